//go:build !amd64

package bptc

// lanes is never true here; the functions are there for the compiler.
var lanes = false

func estimateTwo(moments *float32, table *uint32, off, along *float32, groups int)      {}
func estimateTwoAlpha(moments *float32, table *uint32, off, along *float32, groups int) {}
func estimateThree(moments *float32, table *uint32, off, along *float32, groups int)    {}
