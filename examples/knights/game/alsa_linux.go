//go:build !nosound

package main

// #cgo pkg-config: alsa
// #include <alsa/asoundlib.h>
//
// static void quiet(const char *file, int line, const char *function, int err, const char *format, ...) {}
// static void quiet_alsa(void) { snd_lib_error_set_handler(quiet); }
import "C"

// quietALSA keeps ALSA from printing a dozen lines where there is no sound device. The game prints one.
func quietALSA() { C.quiet_alsa() }
