//go:build !nosound

package main

import (
	"io"
	"time"

	"github.com/ebitengine/oto/v3"

	"example.com/knights/mix"
)

// openDevice has the sound device read frames of floats from a mix, and calls failed if there is none.
func openDevice(rate int, frames io.Reader, failed func(error)) {
	quietALSA()
	device, ready, err := oto.NewContext(&oto.NewContextOptions{SampleRate: rate, ChannelCount: mix.Channels,
		Format: oto.FormatFloat32LE, BufferSize: 50 * time.Millisecond})
	if err != nil {
		failed(err)
		return
	}
	go func() {
		<-ready
		if err := device.Err(); err != nil {
			failed(err)
			return
		}
		player := device.NewPlayer(frames)
		player.SetBufferSize(rate / 20 * 4 * mix.Channels) // a twentieth of a second: a step is heard when it is seen
		player.Play()
	}()
}
