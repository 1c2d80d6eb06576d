//go:build unix && !linux

package cas

func nameFile(from, to string) error { return linkFile(from, to) }
