//go:build !race

package build

const slowdown = 1
