//go:build unix && !linux

package doctor

func systemLimits(int64) []Limit { return []Limit{openFiles()} }
