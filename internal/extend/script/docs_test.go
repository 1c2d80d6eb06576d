package script

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPage: docs/scripts.md tells of all that a script can use.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/scripts.md")
	if err != nil {
		t.Fatal(err)
	}
	check := func(object string, names []string) {
		for _, n := range names {
			if !strings.Contains(string(page), object+n) {
				t.Errorf("docs/scripts.md does not tell of %s%s", object, n)
			}
		}
	}
	check("job.", (*jobValue)(nil).AttrNames())
	check("m.", (*imageValue)(nil).AttrNames())
	check("w.", (*writerValue)(nil).AttrNames())
	check("`", (*xmlElement)(nil).AttrNames())
	var names []string
	for n := range predeclared() {
		if !strings.HasPrefix(n, hidden) && !slices.Contains([]string{"list", "tuple", "set", "dict", "sorted", "reversed", "enumerate", "zip", "bytes", "str", "repr", "range", "int", "getattr"}, n) {
			names = append(names, n)
		}
	}
	if len(names) < 10 {
		t.Errorf("only %d names", len(names))
	}
	check("", names)
}

// TestInterpreter: the fingerprint has the version that go.mod has.
func TestInterpreter(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "go.starlark.net "+Interpreter) {
		t.Errorf("go.mod has another version than %s", Interpreter)
	}
}
