package doctor

import "github.com/kiln-pipeline/kiln/internal/base/diag"

// Limit is a limit of the system.
type Limit struct {
	Name  string `json:"name"`
	Value int64  `json:"value"` // -1 for no limit
	Need  int64  `json:"need"`  // what this project needs
	Hint  string `json:"-"`
}

// openFilesWanted is enough for some hundred jobs at once with a few files each.
const openFilesWanted = 1024

// limits reads the limits of the system, and reports those that this project may reach.
func (r *Report) limits() {
	r.Limits = systemLimits(int64(r.Folders))
	r.judge()
}

func (r *Report) judge() {
	for _, l := range r.Limits {
		if l.Value >= 0 && l.Value < l.Need {
			r.add(diag.Warningf(diag.LimitLow, diag.Pos{}, "the system allows %d %s; this project wants %d", l.Value, l.Name, l.Need).WithHint("%s", l.Hint))
		}
	}
}
