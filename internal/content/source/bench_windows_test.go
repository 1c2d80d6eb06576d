package source

import (
	"os"
	"testing"
)

func rawStats(b *testing.B, folder string, names []string) {
	for _, n := range names {
		if _, err := os.Lstat(folder + `\` + n); err != nil {
			b.Error(err)
		}
	}
}
