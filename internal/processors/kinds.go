package processors

import (
	"strings"

	atlastable "github.com/kiln-pipeline/kiln/internal/media/codec/atlas"
	"github.com/kiln-pipeline/kiln/internal/media/codec/dds"
	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/internal/media/codec/flac"
	gltffile "github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ktx2"
	"github.com/kiln-pipeline/kiln/internal/media/codec/mp3"
	"github.com/kiln-pipeline/kiln/internal/media/codec/ogg"
	"github.com/kiln-pipeline/kiln/internal/media/codec/qoa"
	"github.com/kiln-pipeline/kiln/internal/media/codec/tracker"
	"github.com/kiln-pipeline/kiln/internal/media/codec/wav"
	"github.com/kiln-pipeline/kiln/internal/media/header"
	"github.com/kiln-pipeline/kiln/internal/media/pixel"
	"github.com/kiln-pipeline/kiln/internal/media/placeholder"
	"github.com/kiln-pipeline/kiln/internal/media/preview"
	"github.com/kiln-pipeline/kiln/internal/media/whole"
	"github.com/kiln-pipeline/kiln/internal/processors/atlas"
	"github.com/kiln-pipeline/kiln/internal/processors/data"
	"github.com/kiln-pipeline/kiln/internal/processors/gltf"
	"github.com/kiln-pipeline/kiln/internal/processors/sound"
	"github.com/kiln-pipeline/kiln/internal/processors/sprite"
	"github.com/kiln-pipeline/kiln/internal/processors/texture"
	"github.com/kiln-pipeline/kiln/processor"
)

// Kinds are the kinds of content that Kiln knows, in the order of display. If an extension is in two kinds, the
// first one has it.
var Kinds = []Kind{
	{
		Name: "texture", Doc: "pictures and textures", Page: "textures.md", Codes: "K12", Processor: texture.New, Guess: texture.Guess,
		Read: readImage,
		Formats: []Format{
			{Name: "PNG", Extensions: pixel.Extensions("png"), View: preview.Picture, Media: "image/png", Check: whole.PNG,
				Describe: header.Picture, Placeholder: placeholder.Picture},
			{Name: "JPEG", Extensions: pixel.Extensions("jpeg"), View: preview.Picture, Media: "image/jpeg", Check: whole.JPEG,
				Describe: header.Picture, Placeholder: placeholder.Picture},
			{Name: "GIF", Extensions: pixel.Extensions("gif"), View: preview.Picture, Media: "image/gif", Check: whole.GIF,
				Describe: header.Picture, Placeholder: placeholder.Picture},
			{Name: "BMP", Extensions: pixel.Extensions("bmp"), View: preview.Picture, Media: "image/bmp", Check: whole.BMP,
				Describe: header.Picture, Placeholder: placeholder.Picture},
			{Name: "TIFF", Extensions: pixel.Extensions("tiff"), View: preview.Picture,
				Describe: header.Picture, Placeholder: placeholder.Picture},
			{Name: "WebP", Extensions: pixel.Extensions("webp"), View: preview.Picture, Media: "image/webp", Check: whole.RIFF,
				Describe: header.Picture, Placeholder: placeholder.Picture},
			{Name: "TGA", Extensions: pixel.Extensions("tga"), View: preview.Picture,
				Describe: header.Picture, Placeholder: placeholder.Picture},
			{Name: "QOI", Extensions: pixel.Extensions("qoi"), View: preview.Picture, Check: whole.QOI,
				Describe: header.Picture, Placeholder: placeholder.Picture},
			{Name: "Photoshop", Extensions: pixel.Extensions("psd"), View: preview.Picture,
				Describe: header.Picture, Placeholder: placeholder.Picture},
			{Name: "Radiance HDR", Extensions: pixel.Extensions("hdr"), View: preview.Picture,
				Describe: header.Picture, Placeholder: placeholder.Picture},
			{Name: "OpenEXR", Extensions: pixel.Extensions("exr"), View: preview.Picture,
				Describe: header.Picture, Placeholder: placeholder.Picture},
			{Name: "DDS", Extensions: []string{dds.Extension}, View: preview.Texture,
				Describe: header.DDS, Placeholder: placeholder.DDS},
			{Name: "KTX 2.0", Extensions: []string{ktx2.Extension}, View: preview.Texture, Media: "image/ktx2", Check: whole.KTX2,
				Describe: header.KTX2, Placeholder: placeholder.KTX2},
		},
	},
	{
		Name: "atlas", Doc: "folders of small images", Page: "atlases.md", Codes: "K13", Processor: atlas.New, Glyph: "▦",
		Read: readImage,
		Formats: []Format{
			{Name: "frame table", Extensions: []string{atlastable.Extension}, Made: true, View: preview.Atlas, Describe: header.Atlas},
		},
	},
	{
		Name: "sprite", Doc: "images for the atlas of a parcel", Page: "atlases.md", Codes: "K13", Processor: sprite.New, Glyph: "▦",
		Read:    readImage,
		Formats: []Format{{Name: "name of a frame", Extensions: []string{sprite.Extension}, Made: true, View: preview.Text}},
	},
	{
		Name: "model", Doc: "models and scenes", Page: "models.md", Codes: "K14", Processor: gltf.New, Glyph: "3D",
		Read: readModel,
		Formats: []Format{
			{Name: "glTF", Extensions: []string{gltffile.TextExtension}, View: preview.Data, Parse: document.JSON,
				Describe: header.GLTF, Placeholder: placeholder.GLTF},
			{Name: "glTF binary", Extensions: []string{gltffile.BinaryExtension}, View: preview.Model, Media: "model/gltf-binary", Check: whole.GLB,
				Describe: header.GLTF, Placeholder: placeholder.GLB},
		},
	},
	{
		Name: "data", Doc: "data", Page: "data.md", Codes: "K11", Processor: newData, Guess: data.Guess, Glyph: "{}", Everywhere: true,
		Read: readDocument,
		Formats: []Format{
			{Name: "JSON", Extensions: document.Extensions("json"), View: preview.Data, Parse: document.JSON,
				Describe: header.Data("JSON", document.JSON)},
			{Name: "TOML", Extensions: document.Extensions("toml"), View: preview.Data, Parse: document.TOML,
				Describe: header.Data("TOML", document.TOML)},
			{Name: "YAML", Extensions: document.Extensions("yaml"), View: preview.Data, Parse: document.YAML,
				Describe: header.Data("YAML", document.YAML)},
			{Name: "CSV", Extensions: document.Extensions("csv"), View: preview.Data, Parse: document.CommaCSV,
				Describe: header.Data("CSV", document.CommaCSV)},
			{Name: "TSV", Extensions: document.Extensions("tsv"), View: preview.Data, Parse: document.TabCSV,
				Describe: header.Data("TSV", document.TabCSV)},
			{Name: "Java properties", Extensions: document.Extensions("properties"), View: preview.Data, Parse: document.Properties,
				Describe: header.Data("properties", document.Properties)},
			{Name: "MessagePack", Extensions: words(".msgpack"), Made: true, View: preview.Data, Parse: preview.MessagePack,
				Describe: header.Data("MessagePack", preview.MessagePack)},
			{Name: "libGDX skin", Extensions: words(".skin"), Made: true, View: preview.Data, Parse: document.RelaxedJSON},
		},
	},
	{
		Name: "sound", Doc: "sounds and music", Page: "sounds.md", Codes: "K17", Processor: sound.New, Glyph: "♪",
		Read: readSound,
		Formats: []Format{
			{Name: "WAV", Extensions: words(wav.Extension), View: preview.Sound, Media: "audio/wav", Check: whole.RIFF,
				Describe: header.Sound, Placeholder: placeholder.WAV},
			{Name: "FLAC", Extensions: words(flac.Extension), View: preview.Sound, Media: "audio/flac",
				Describe: header.Sound, Placeholder: placeholder.WAV},
			{Name: "QOA", Extensions: words(qoa.Extension), View: preview.Sound, Check: whole.QOA,
				Describe: header.Sound, Placeholder: placeholder.WAV},
			{Name: "Ogg Vorbis", Extensions: []string{ogg.Extension, ogg.AudioExtension}, View: preview.Sound, Media: "audio/ogg", Check: whole.Ogg,
				Describe: header.Sound, Placeholder: placeholder.Vorbis},
			{Name: "Opus", Extensions: words(ogg.OpusExtension), View: preview.Sound, Media: "audio/ogg", Check: whole.Ogg,
				Describe: header.Sound, Placeholder: placeholder.Opus},
			{Name: "MP3", Extensions: words(mp3.Extension), View: preview.Sound, Media: "audio/mpeg",
				Describe: header.Sound, Placeholder: placeholder.MP3},
			{Name: "ProTracker module", Extensions: words(".mod"), Describe: header.Module, Placeholder: silent(tracker.MOD)},
			{Name: "FastTracker 2 module", Extensions: words(".xm"), Describe: header.Module, Placeholder: silent(tracker.XM)},
			{Name: "Scream Tracker 3 module", Extensions: words(".s3m"), Describe: header.Module, Placeholder: silent(tracker.S3M)},
			{Name: "Impulse Tracker module", Extensions: words(".it"), Describe: header.Module, Placeholder: silent(tracker.IT)},
		},
	},
	{
		Name: "music", Doc: "sounds of other formats, and projects of sound programs", Glyph: "♪",
		Formats: []Format{
			{Name: "MPEG-4 audio", Extensions: words(".m4a"), View: preview.Sound, Media: "audio/mp4"},
			{Name: "AIFF", Extensions: words(".aif .aiff")},
			{Name: "Windows Media", Extensions: words(".wma")},
			{Name: "MIDI", Extensions: words(".mid")},
			{Name: "sound project", Extensions: words(".aup .aup3 .flp .ptx .rpp"), Edited: true},
		},
	},
	{
		Name: "font", Doc: "fonts", Glyph: "Aa",
		Formats: []Format{
			{Name: "TrueType", Extensions: words(".ttf"), View: preview.Font, Media: "font/ttf", Describe: header.Font},
			{Name: "OpenType", Extensions: words(".otf"), View: preview.Font, Media: "font/otf", Describe: header.Font},
			{Name: "WOFF", Extensions: words(".woff"), View: preview.Font, Media: "font/woff"},
			{Name: "WOFF2", Extensions: words(".woff2"), View: preview.Font, Media: "font/woff2"},
			{Name: "bitmap font", Extensions: words(".fnt .bdf"), View: preview.Text},
		},
	},
	{
		Name: "shader", Doc: "shaders", Glyph: "¶",
		Formats: []Format{
			{Name: "GLSL", Extensions: words(".glsl .vert .frag .vs .comp .geom .tesc .tese .gs"), View: preview.Text, Describe: header.Text},
			{Name: "HLSL", Extensions: words(".hlsl .fx"), View: preview.Text, Describe: header.Text},
			{Name: "WGSL", Extensions: words(".wgsl"), View: preview.Text, Describe: header.Text},
			{Name: "Metal", Extensions: words(".metal"), View: preview.Text, Describe: header.Text},
			{Name: "engine's own", Extensions: words(".shader .gdshader"), View: preview.Text, Describe: header.Text},
		},
	},
	{
		Name: "map", Doc: "maps of map editors", Glyph: "¶",
		Formats: []Format{
			{Name: "Tiled", Extensions: words(".tmx .tsx"), View: preview.Text, Describe: header.Text},
			{Name: "LDtk", Extensions: words(".ldtk .ldtkl"), View: preview.Data, Parse: document.JSON,
				Describe: header.Data("LDtk", document.JSON)},
		},
	},
	{
		Name: "video", Doc: "films",
		Formats: []Format{
			{Name: "MPEG-4", Extensions: words(".mp4")},
			{Name: "WebM", Extensions: words(".webm")},
			{Name: "Ogg Theora", Extensions: words(".ogv"), Check: whole.Ogg},
		},
	},
	{
		Name: "drawing", Doc: "documents of programs that draw",
		Formats: []Format{
			{Name: "SVG", Extensions: words(".svg"), Edited: true},
			{Name: "GIMP", Extensions: words(".xcf"), Edited: true},
			{Name: "Krita", Extensions: words(".kra"), Edited: true, Check: whole.ZIP},
			{Name: "Aseprite", Extensions: words(".ase .aseprite"), Edited: true},
			{Name: "vector picture", Extensions: words(".ai .cdr .eps .fig .sketch .xd"), Edited: true},
			{Name: "layered picture", Extensions: words(".clip .indd .ora .pdn"), Edited: true},
			{Name: "material", Extensions: words(".sbs .sbsar .spp"), Edited: true},
			{Name: "Spine project", Extensions: words(".spine"), Edited: true},
			{Name: "KTX 1", Extensions: words(".ktx")},
		},
	},
	{
		Name: "scene", Doc: "models of other formats",
		Formats: []Format{
			{Name: "FBX", Extensions: words(".fbx"), Edited: true},
			{Name: "Wavefront", Extensions: words(".obj"), Edited: true},
			{Name: "Blender", Extensions: words(".blend"), Edited: true},
			{Name: "IQM", Extensions: words(".iqm")},
			{Name: "Collada", Extensions: words(".dae"), Edited: true},
			{Name: "PLY", Extensions: words(".ply"), Edited: true},
			{Name: "MagicaVoxel", Extensions: words(".vox"), Edited: true},
			{Name: "USD", Extensions: words(".usd .usda .usdc .usdz"), Edited: true},
			{Name: "other models", Extensions: words(".3ds .abc .lwo .skp .stl .x3d"), Edited: true},
			{Name: "other scenes", Extensions: words(".c4d .hip .hiplc .hipnc .lws .ma .max .mb .mud .zpr .ztl"), Edited: true},
		},
	},
	{
		Name: "text", Doc: "text and scripts", Glyph: "¶", Everywhere: true,
		Formats: []Format{
			{Name: "text", Extensions: words(".txt .md"), View: preview.Text, Describe: header.Text},
			{Name: "XML", Extensions: words(".xml"), View: preview.Text, Describe: header.Text},
			{Name: "INI", Extensions: words(".ini"), View: preview.Text, Describe: header.Text},
			{Name: "script", Extensions: words(".star .lua"), View: preview.Text, Describe: header.Text},
		},
	},
	{
		Name: "archive", Doc: "archives", Everywhere: true,
		Formats: []Format{
			{Name: "ZIP", Extensions: words(".zip"), Check: whole.ZIP},
		},
	},
}

func newData() processor.Processor { return data.New() }

func words(s string) []string { return strings.Fields(s) }

// silent returns the placeholder of a tracker module.
func silent(f tracker.Format) func() []byte { return func() []byte { return tracker.Silent(f) } }
