package schema

import (
	"testing"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
)

// TestFormsWithEqualComplaints has a form with the same error twice. One of them is kept.
func TestFormsWithEqualComplaints(t *testing.T) {
	s, err := compileText(t, `{"anyOf": [{"allOf": [{"type": "string"}, {"type": "string"}]}, {"const": true}]}`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Validate(&document.Value{V: int64(1)})
	const want = ":0:0: fits none of the forms it may have: is a number, but must be a string; or is 1, but must be true"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}
