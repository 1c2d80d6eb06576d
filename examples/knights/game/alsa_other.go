//go:build !linux && !nosound

package main

func quietALSA() {}
