package cli

import (
	"maps"
	"strconv"

	"github.com/kiln-pipeline/kiln/internal/engine"
	"github.com/kiln-pipeline/kiln/internal/make/job"
	"github.com/kiln-pipeline/kiln/internal/make/view"
)

// soundLine has the facts of a sound: of the job's main product.
type soundLine struct {
	Codec    string        `json:"codec"`
	Channels int64         `json:"channels"`
	Rate     int64         `json:"rate"`
	Frames   int64         `json:"frames"`
	Loop     []int64       `json:"loop,omitempty"` // first frame, and the one after the last
	LoopKind string        `json:"loop_kind,omitempty"`
	Markers  int64         `json:"markers"`
	Stream   bool          `json:"stream"`
	Loudness *loudnessLine `json:"loudness,omitempty"` // none: it could not be measured
	Gain     float64       `json:"gain"`               // dB
	Limited  string        `json:"limited,omitempty"`  // what true_peak did not allow: loudness or gain asked and reached
}

// loudnessLine is in LUFS, LU and dBTP. Silence has no loudness and no peak.
type loudnessLine struct {
	Integrated   *float64 `json:"integrated"`
	Basis        string   `json:"basis"` // basis of integrated: "integrated", "momentary" for sounds under 0.4 s, "silent"
	Range        *float64 `json:"range"`
	TruePeak     *float64 `json:"true_peak"`
	MomentaryMax *float64 `json:"momentary_max"`
	ShortTermMax *float64 `json:"short_term_max"`
}

// soundOf reads the facts of a job's main product; nil if that is not a sound, or a tracker module, which has no
// samples.
func soundOf(j *view.JobView) *soundLine {
	for _, p := range productsOf(j) {
		facts := factsOf(&p)
		if p.SubID != 0 || p.Name != "" || facts["sound.rate"] == "" {
			continue
		}
		whole := func(name string) int64 { n, _ := strconv.ParseInt(facts["sound."+name], 10, 64); return n }
		part := func(name string) *float64 {
			if v, err := strconv.ParseFloat(facts["sound."+name], 64); err == nil {
				return &v
			}
			return nil
		}
		l := &soundLine{
			Codec: facts["sound.codec"], Channels: whole("channels"), Rate: whole("rate"), Frames: whole("frames"), Markers: whole("markers"),
			Stream: facts["sound.stream"] == "true", Limited: facts["sound.limited"],
		}
		if g := part("gain"); g != nil {
			l.Gain = *g
		}
		if l.LoopKind = facts["sound.loop"]; l.LoopKind != "" {
			l.Loop = []int64{whole("loop_begin"), whole("loop_end")}
		}
		if basis := facts["sound.basis"]; basis != "" {
			l.Loudness = &loudnessLine{part("loudness"), basis, part("range"), part("true_peak"), part("momentary_max"),
				part("short_term_max")}
		}
		return l
	}
	return nil
}

// factsOf returns the facts of a product.
func factsOf(p *engine.Product) map[string]string {
	return maps.Collect(job.Facts(p.Facts))
}
