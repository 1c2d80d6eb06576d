package manual

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestWrite(t *testing.T) {
	root := &cobra.Command{Use: "kiln", Short: "Build content", Long: "Build.\n\n.not a request \\ here"}
	root.PersistentFlags().StringP("directory", "C", ".", "look in `DIR`")
	sub := &cobra.Command{Use: "build [PATTERN...]", Short: "Build some", Example: "  kiln build a-b", Run: func(*cobra.Command, []string) {}}
	sub.Flags().Bool("dry-run", false, "show it")
	sub.Flags().Bool("old", false, "")
	sub.Flags().MarkHidden("old")
	root.AddCommand(sub)
	dir := filepath.Join(t.TempDir(), "man")
	files, err := Write(root, dir, "1.0")
	if err != nil || !slices.Equal(files, []string{"kiln.1", "kiln-build.1"}) {
		t.Fatalf("%v, %v", files, err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "kiln-build.1"))
	for _, want := range []string{
		".TH \"KILN-BUILD\" \"1\"", ".SH NAME\nkiln\\-build \\- Build some\n", ".TP\n.B \\-\\-dry\\-run\nshow it\n", ".B \\-C, \\-\\-directory DIR\nlook in DIR\n",
		".nf\n  kiln build a\\-b\n.fi\n",
	} {
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
	if strings.Contains(string(page), "old") {
		t.Error("a hidden flag is shown")
	}
	if main := Page(root, "1.0"); !strings.Contains(main, "\n\\&.not a request \\e here\n") || !strings.Contains(main, ".B build\nBuild some\n") {
		t.Errorf("%s", main)
	}
}
