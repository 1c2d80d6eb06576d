package pixel

// Float is RGBA in 32-bit floating point, straight alpha, rows from the top down without padding, so
// len(Pix) is 4*Width*Height. Where the file holds light (Radiance HDR, OpenEXR), values are linear and may be over 1.
type Float struct {
	Width, Height int
	Pix           []float32
}

// NewFloat is a transparent black image.
func NewFloat(width, height int) *Float {
	return &Float{width, height, make([]float32, 4*width*height)}
}
