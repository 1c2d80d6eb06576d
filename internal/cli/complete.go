package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

// completeAssets lists the ids of the assets that begin with a text, and in a folder of a source root also the paths from
// there. It returns none for a project that cannot be read.
func (a *app) completeAssets(ctx context.Context, begin string) []string {
	p, err := a.open()
	if err != nil {
		return nil
	}
	v, err := p.Look(ctx, nil, nil)
	if err != nil {
		return nil
	}
	var ids []string
	folder := p.Inside(p.Below(a.dir))
	for i := range v.Assets {
		if rest, ok := strings.CutPrefix(v.Assets[i].Path, folder); ok && folder != "" && strings.HasPrefix(rest, begin) {
			ids = append(ids, rest)
		}
		if strings.HasPrefix(v.Assets[i].ID, begin) {
			ids = append(ids, v.Assets[i].ID)
		}
	}
	return ids
}

func (a *app) completePlatforms(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	p, err := a.open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.PlatformNames(), cobra.ShellCompDirectiveNoFileComp
}
