package move

import (
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/settings"
)

// TestSplice checks that edits count characters, may share a line, and do not change line ends and a byte order mark.
func TestSplice(t *testing.T) {
	const text = "\uFEFFä = ['old', 'old/x']\r\nb = \"old\""
	const want = "\uFEFFä = [\"new\", \"new/x\"]\r\nb = \"new\""
	spans := settings.NewText("f", []byte(text[len("\uFEFF"):]))
	got := splice([]byte(text), []edit{
		{spans.At(1, 6, 5), `"new"`}, {spans.At(2, 5, 5), `"new"`}, {spans.At(1, 13, 7), `"new/x"`},
	})
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
