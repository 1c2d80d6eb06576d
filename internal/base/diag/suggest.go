package diag

import (
	"fmt"

	"golang.org/x/text/unicode/norm"
)

// Nearest is the candidate most similar to word, or "" if none is similar enough to be a typing
// error: at most a third of its letters may differ (Damerau-Levenshtein distance, optimal string
// alignment).
func Nearest(word string, candidates []string) string {
	best, bestDist := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		if c == word {
			continue
		}
		if d := distance(word, c); d < bestDist { // 0 if only the case differs
			best, bestDist = c, d
		}
	}
	return best
}

// DidYouMean is `did you mean "x"?` for the nearest candidate, or "". A name that looks the same on a screen is said to be
// in another Unicode form: é is one character (NFC) or an e with an accent (NFD, as older Macs name files).
func DidYouMean(word string, candidates []string) string {
	composed := norm.NFC.String(word)
	for _, c := range candidates {
		if c == word || norm.NFC.String(c) != composed {
			continue
		}
		form := "NFD"
		if norm.NFC.IsNormalString(c) {
			form = "NFC"
		}
		return fmt.Sprintf(
			"there is %q, which looks the same and is written in another Unicode form (%s); write both in one, best in NFC", c, form)
	}
	if n := Nearest(word, candidates); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	return ""
}

func distance(a, b string) int {
	if len(a) > 256 || len(b) > 256 {
		return 256
	}
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if lower(a[i-1]) == lower(b[j-1]) {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && lower(a[i-1]) == lower(b[j-2]) && lower(a[i-2]) == lower(b[j-1]) {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// Known returns all codes, sorted.
func Known() []string { return known }
