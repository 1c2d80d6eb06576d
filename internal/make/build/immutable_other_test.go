//go:build !linux

package build

import "testing"

func immutable(t *testing.T, dir string) func() {
	t.Skip("only Linux has folders that nobody can change")
	return nil
}
