package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/make/build"
	"github.com/kiln-pipeline/kiln/internal/make/job"
)

// origins puts, for files in the output folder, what the last build made them of: the asset, or the parcel. Other names stay as they are,
// and so do files that nothing is known of.
func (a *app) origins(ctx context.Context, p *build.Project, patterns []string) []string {
	all := a.named(p, patterns)
	for i, pattern := range patterns {
		file := p.InProject(a.namedFile(p, pattern))
		if !strings.HasPrefix(file, p.Output+"/") {
			continue
		}
		db, err := openDatabase(p)
		if err != nil {
			continue
		}
		literal := "'" + strings.ReplaceAll(file, "'", "''") + "'"
		sql := fmt.Sprintf("SELECT asset FROM products WHERE file = %[1]s UNION SELECT '%[2]s' || parcel FROM parcels WHERE file = %[1]s",
			literal, job.ParcelMark)
		found, err := db.RunSQL(ctx, sql, 1)
		if err == nil && len(found.Rows) == 1 {
			all[i] = found.Rows[0][0].(string)
		}
		db.Close()
	}
	return all
}
