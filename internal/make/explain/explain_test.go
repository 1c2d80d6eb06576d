package explain

import "testing"

func TestPlainGlob(t *testing.T) {
	for glob, want := range map[string]string{
		"ui/**/*.{[pP][nN][gG],[tT][gG][aA]}": "ui/**/*.{png,tga}",
		"[aB][ab][a-Z]/[!x].png":              "[aB][ab][a-Z]/[!x].png",
	} {
		if got := Glob(glob); got != want {
			t.Errorf("%s: %s, want %s", glob, got, want)
		}
	}
}
