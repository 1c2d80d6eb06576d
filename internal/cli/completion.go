package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script that makes a shell complete commands and asset ids",
		Long:  "Print a script that makes a shell complete commands, flags, and the ids of the project's assets.",
		Example: `  source <(kiln completion bash)                           in ~/.bashrc
  kiln completion zsh > "${fpath[1]}/_kiln"                 once
  kiln completion fish > ~/.config/fish/completions/kiln.fish
  kiln completion powershell | Out-String | Invoke-Expression`,
		GroupID:   groupAbout,
		Args:      exactly("a shell: " + strings.Join(shells, ", ")),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
			hint := diag.DidYouMean(args[0], shells)
			if hint == "" {
				hint = "there are: " + strings.Join(shells, ", ")
			}
			return wrongUsage(hint, "there is no completion for %q", args[0])
		},
	}
}
