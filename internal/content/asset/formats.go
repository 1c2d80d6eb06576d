package asset

import (
	"strings"

	"github.com/kiln-pipeline/kiln/processor"
)

// Claimed returns the extensions, in lower case, that processors claim.
func Claimed(infos []processor.Info) map[string]bool {
	claimed := map[string]bool{}
	for _, info := range infos {
		for _, e := range info.Extensions {
			claimed[strings.ToLower(e)] = true
		}
	}
	return claimed
}

// Unasked reports whether an asset is a file that is copied although no rule says so.
func (a *Asset) Unasked() bool { return !a.Folder && len(a.Resolved) > 0 && a.Resolved[0].unasked }
