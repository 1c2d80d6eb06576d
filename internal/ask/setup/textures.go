package setup

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// godotTexture reads the options of Godot 3 and 4 for pictures. Godot makes mips only where they are asked for.
func (k *taken) godotTexture(file string, params map[string]string) {
	if params["mipmaps/generate"] == "false" || params["flags/mipmaps"] == "false" {
		k.set(mips, "mips = false")
	}
	premultiplied := params["process/premult_alpha"] == "true"
	if premultiplied {
		k.set(premultiply, "premultiply = true")
	}
	if params["process/fix_alpha_border"] == "true" && !premultiplied {
		k.set(bleed, "bleed = 4") // Godot's radius
	}
	for _, key := range []string{"process/size_limit", "size_limit"} {
		if n, err := strconv.Atoi(params[key]); err == nil && n > 0 && n <= 16384 {
			k.set(size, "max_size = %d", n)
		}
	}
	for i, channel := range []string{"red", "green", "blue", "alpha"} {
		key := "process/channel_remap/" + channel
		if v := params[key]; v != "" && v != strconv.Itoa(i) {
			k.leave(file, key, v)
		}
	}
	if params["process/hdr_clamp_exposure"] == "true" {
		k.leave(file, "process/hdr_clamp_exposure", "true")
	}
}

// monogameTexture applies what MonoGame's TextureProcessor does: by default it makes magenta transparent, multiplies colours by
// alpha, and makes no mips.
func monogameTexture(file string, params map[string]string) (k taken) {
	k.from = "MonoGame"
	is := func(name string, otherwise bool) bool {
		if v, ok := params[strings.ToLower(name)]; ok {
			return strings.EqualFold(v, "true")
		}
		return otherwise
	}
	if !is("GenerateMipmaps", false) {
		k.set(mips, "mips = false")
	}
	if is("PremultiplyAlpha", true) {
		k.set(premultiply, "premultiply = true")
	}
	if is("ColorKeyEnabled", true) {
		rgb, ok := [3]int{255, 0, 255}, true
		if text, given := params["colorkeycolor"]; given {
			rgb, ok = monogameColor(text)
		}
		if ok {
			k.set(key, `color_key = "#%02x%02x%02x"`, rgb[0], rgb[1], rgb[2])
		} else {
			k.leave(file, "ColorKeyColor", params["colorkeycolor"])
		}
	}
	if is("ResizeToPowerOfTwo", false) {
		k.set(size, `power_of_two = "up"`)
	}
	if is("MakeSquare", false) {
		k.leave(file, "MakeSquare", "True")
	}
	if f := params["textureformat"]; f != "" && !strings.EqualFold(f, "Color") && !strings.EqualFold(f, "NoChange") {
		k.leave(file, "TextureFormat", f)
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		switch name {
		case "generatemipmaps", "premultiplyalpha", "colorkeyenabled", "colorkeycolor", "resizetopoweroftwo", "makesquare", "textureformat":
		default:
			k.leave(file, name, params[name])
		}
	}
	return k
}

// monogameColor reads "255,0,255,255": red, green, blue and an alpha that does not count.
func monogameColor(text string) (rgb [3]int, ok bool) {
	parts := strings.Split(text, ",")
	if len(parts) != 4 && len(parts) != 3 {
		return rgb, false
	}
	for i := range rgb {
		n, err := strconv.Atoi(strings.TrimSpace(parts[i]))
		if err != nil || n < 0 || n > 255 {
			return rgb, false
		}
		rgb[i] = n
	}
	return rgb, true
}

// leave records a setting that Kiln has nothing for.
func (k *taken) leave(file, name, value string) {
	k.left = append(k.left, fmt.Sprintf("%s=%s of %s", name, value, file))
}
