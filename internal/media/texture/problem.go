package texture

import (
	"errors"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/processor"
)

// DamagedImage returns the warning for a damaged image that could still be read; see [pixel.Picture.Damage].
func DamagedImage(path, what, fixed string) processor.Problem {
	if what != "" {
		what += ": "
	}
	return processor.Problem{Code: string(diag.ImageFixed), Path: path, Text: what + "the file is damaged: " + fixed, Hint: "open it in an image editor and save it again"}
}

// Problem converts an error of pixel.Decode to a message. path is the path of the image's source file, or empty for the
// asset's own file. what names the image if it is a part of the file ("image 2"), or is empty.
func Problem(path, what string, err error) *processor.Problem {
	p := &processor.Problem{Code: string(diag.ImageDamaged), Path: path, Text: err.Error(), Err: err}
	if what != "" {
		p.Text = what + ": " + p.Text
	}
	var e *pixel.Error
	if !errors.As(err, &e) {
		return p
	}
	code := diag.ImageDamaged
	switch e.Fault {
	case pixel.Empty:
		code, p.Hint = diag.ImageEmpty, "save or copy it again"
	case pixel.Unknown:
		code, p.Hint = diag.ImageUnknown, "save it as a PNG or another kind that `kiln processors texture` lists, or give it another processor in a rule"
	case pixel.Truncated:
		code, p.Hint = diag.ImageTruncated, "save or copy it again: it looks half-written"
	case pixel.Damaged:
		p.Hint = "open it in an image editor and save it again"
	case pixel.Unsupported:
		code, p.Hint = diag.ImageUnsupported, "save it as a PNG"
		if e.Format == "png" {
			p.Hint = "save it again as a plain PNG"
		}
	case pixel.TooLarge:
		code, p.Hint = diag.ImageTooLarge, "scale the picture itself down: max_size comes too late, as the picture must be read first"
	}
	p.Code = string(code)
	return p
}
