package ship

import (
	"path/filepath"

	"github.com/kiln-pipeline/kiln/internal/content/project"
	"github.com/kiln-pipeline/kiln/internal/delivery/release"
)

// Released returns the manifest of the parcels of some platforms in an output folder: the contents of the next release.
// The error is fs.ErrNotExist if those of a platform were not built yet.
func Released(p *project.Project, output string, platforms []string) (*release.Manifest, error) {
	m := &release.Manifest{}
	for _, name := range platforms {
		folder := Path(p, output, p.Output+"/"+Folder(name))
		list, err := ReadList(filepath.Join(folder, ListName))
		if err != nil {
			return nil, err
		}
		for _, e := range list.Parcels {
			x, err := release.ReadParcel(name, e.Name, filepath.Join(folder, e.File))
			if err != nil {
				return nil, err
			}
			m.Parcels = append(m.Parcels, x)
		}
	}
	m.Sort()
	return m, nil
}
