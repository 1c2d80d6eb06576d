package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/template"
	"time"
)

// The plot has a panel for each scenario: time against assets, both on logarithmic scales that all panels share.
const (
	plotColumns = 4
	panelWidth  = 200.0
	panelHeight = 170.0
	panelLeft   = 52.0 // space for the labels of the axes
	panelTop    = 34.0
	cellWidth   = panelLeft + panelWidth + 18
	cellHeight  = panelTop + panelHeight + 34
	headHeight  = 64.0
)

type plot struct {
	Width, Height float64
	Subtitle      string
	Legend        []mark
	Panels        []panel
}

type mark struct {
	X, Y  float64
	Class string
	Text  string
}

type panel struct {
	X, Y          float64
	Width, Height float64
	Title         string
	XTicks        []mark
	YTicks        []mark
	Lines         []line
}

type line struct {
	Class  string
	Points string // of a polyline
	Dots   []mark
}

// scale maps values on a logarithmic axis to lengths.
type scale struct{ low, high, length float64 }

func (s scale) at(v float64) float64 {
	return s.length * (math.Log10(v) - math.Log10(s.low)) / (math.Log10(s.high) - math.Log10(s.low))
}

// writePlot draws all medians to a file.
func writePlot(file string, r *results, sizes []int, tools []string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := draw(f, r, sizes, tools); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func draw(w io.Writer, r *results, sizes []int, tools []string) error {
	sizes = slices.Compact(slices.Sorted(slices.Values(sizes)))
	low, high := r.range10()
	x := scale{float64(sizes[0]) / 1.6, float64(sizes[len(sizes)-1]) * 1.6, panelWidth}
	y := scale{low, high, panelHeight}
	var panels []panel
	drawn := map[string]bool{} // tools
	for _, st := range allSteps() {
		p := panel{
			X: panelLeft + float64(len(panels)%plotColumns)*cellWidth, Y: headHeight + panelTop + float64(len(panels)/plotColumns)*cellHeight,
			Width: panelWidth, Height: panelHeight, Title: st.title,
		}
		for _, t := range tools {
			if l, ok := r.line(st.name, t, sizes, x, y); ok {
				p.Lines = append(p.Lines, l)
				drawn[t] = true
			}
		}
		if len(p.Lines) == 0 {
			continue
		}
		for _, n := range sizes {
			p.XTicks = append(p.XTicks, mark{X: round(x.at(float64(n))), Y: panelHeight, Text: thousands(n)})
		}
		for v := low; v < high*1.01; v *= 10 {
			p.YTicks = append(p.YTicks, mark{Y: round(panelHeight - y.at(v)), Text: decade(v)})
		}
		panels = append(panels, p)
	}
	all := plot{
		Width: 16 + float64(min(plotColumns, len(panels)))*cellWidth, Height: headHeight + math.Ceil(float64(len(panels))/plotColumns)*cellHeight,
		Subtitle: "median time against number of assets, both logarithmic; lower is better", Panels: panels,
	}
	for _, t := range tools {
		text := t
		if t == floorName {
			text = "floor: statx of all files"
		}
		if drawn[t] {
			all.Legend = append(all.Legend, mark{X: panelLeft + float64(len(all.Legend))*96, Y: 52, Class: class(t), Text: text})
		}
	}
	return plotTemplate.Execute(w, all)
}

// range10 returns the powers of ten between which all medians are, in seconds.
func (r *results) range10() (low, high float64) {
	low, high = math.Inf(1), 0
	for k := range r.runs {
		if k.tool == spawnName {
			continue
		}
		s := max(median(r.runs[k]).Wall, time.Microsecond).Seconds()
		low, high = min(low, s), max(high, s)
	}
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	if !(low < high) {
		return 0.001, 1
	}
	return low, high
}

func (r *results) line(step, tool string, sizes []int, x, y scale) (line, bool) {
	l := line{Class: class(tool)}
	var points []string
	for _, n := range sizes {
		m, ok := r.median(n, step, tool)
		if !ok {
			continue
		}
		at := mark{X: round(x.at(float64(n))), Y: round(y.length - y.at(max(m.Wall, time.Microsecond).Seconds())),
			Text: fmt.Sprintf("%s, %s assets: %s", tool, thousands(n), seconds(m.Wall))}
		l.Dots = append(l.Dots, at)
		points = append(points, fmt.Sprintf("%g,%g", at.X, at.Y))
	}
	l.Points = strings.Join(points, " ")
	return l, len(points) > 0
}

func class(tool string) string { return strings.ReplaceAll(tool, " ", "-") }
func round(v float64) float64  { return math.Round(v*10) / 10 }

// decade formats a power of ten of seconds.
func decade(s float64) string {
	switch {
	case s > 0.5:
		return fmt.Sprintf("%.0f s", s)
	case s > 0.0005:
		return fmt.Sprintf("%.0f ms", s*1e3)
	}
	return fmt.Sprintf("%.0f µs", s*1e6)
}

// The colours of the lines have enough contrast on white and on black.
var plotTemplate = template.Must(template.New("plot").Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{.Width}} {{.Height}}" width="{{.Width}}" height="{{.Height}}" role="img" aria-label="{{.Subtitle}}">
<style>
  svg { --paper: #ffffff; --ink: #24292f; --soft: #6e7781; --grid: #d8dee4; background: var(--paper); font: 11px system-ui, sans-serif }
  @media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --ink: #e6edf3; --soft: #8d96a0; --grid: #30363d } }
  text { fill: var(--soft) } .title { fill: var(--ink); font-weight: 600; font-size: 12px } .head { fill: var(--ink); font-weight: 600; font-size: 15px }
  .grid { stroke: var(--grid); stroke-width: 1 } .frame { fill: none; stroke: var(--grid) } .paper { fill: var(--paper) }
  .y { text-anchor: end } .x { text-anchor: middle }
  .line { fill: none; stroke: var(--c); stroke-width: 1.8; stroke-linejoin: round } .dot { fill: var(--c); stroke: var(--paper); stroke-width: 1 }
  .kiln { --c: #e8590c } .kiln.line { stroke-width: 2.8 } .kiln-cp { --c: #e8590c } .kiln-cp.line { stroke-dasharray: 5 3 }
  .ninja { --c: #3b82d6 } .samurai { --c: #12a39a } .make { --c: #a16bd0 } .tup { --c: #4c9a2a } .statx { --c: #8b949e } .statx.line { stroke-dasharray: 2 3 }
</style>
<rect class="paper" width="100%" height="100%"/>
<text class="head" x="16" y="26">Kiln and its peers</text>
<text x="176" y="26">{{.Subtitle}}</text>
{{range .Legend}}<path class="line {{.Class}}" d="M{{.X}} {{.Y}}m-30 -4h22"/><text x="{{.X}}" y="{{.Y}}">{{.Text}}</text>
{{end}}{{range .Panels}}<g transform="translate({{.X}} {{.Y}})">
  <text class="title" y="-10">{{.Title}}</text>
  {{$p := .}}{{range .YTicks}}<path class="grid" d="M0 {{.Y}}h{{$p.Width}}"/><text class="y" x="-6" y="{{.Y}}" dy="4">{{.Text}}</text>
  {{end}}{{range .XTicks}}<path class="grid" d="M{{.X}} {{.Y}}v4"/><text class="x" x="{{.X}}" y="{{.Y}}" dy="17">{{.Text}}</text>
  {{end}}<rect class="frame" width="{{.Width}}" height="{{.Height}}"/>
  {{range .Lines}}<polyline class="line {{.Class}}" points="{{.Points}}"/>
  {{$c := .Class}}{{range .Dots}}<circle class="dot {{$c}}" cx="{{.X}}" cy="{{.Y}}" r="3"><title>{{.Text}}</title></circle>
  {{end}}{{end}}</g>
{{end}}</svg>
`))
