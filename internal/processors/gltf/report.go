package gltf

import (
	"fmt"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	codec "github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	"github.com/kiln-pipeline/kiln/processor"
)

const (
	exportHint = "export the model again; if it stays, the exporter writes it wrongly"
	warnHint   = `export the model again, or set validate = "warn" to build it as it is`
)

// code is the message code of a class of problem, with a hint.
func code(p codec.Problem) (code diag.Code, hint string) {
	switch p {
	case codec.Syntax:
		return diag.ModelSyntax, "fix the JSON here, or export the model again"
	case codec.Container:
		return diag.ModelContainer, "export the model again; the file was cut off or changed on its way"
	case codec.TooBig:
		return diag.ModelTooBig, "split the model"
	case codec.Version:
		return diag.ModelVersion, "export the model as glTF 2.0; where only the file is left, `npx gltf-pipeline -i old.glb -o new.glb` converts glTF 1.0"
	case codec.Index:
		return diag.ModelIndex, exportHint
	case codec.Bounds:
		return diag.ModelBounds, "export the model again; the file and its buffers do not belong together, or a buffer was cut off"
	case codec.Layout:
		return diag.ModelLayout, exportHint
	case codec.Hierarchy:
		return diag.ModelHierarchy, exportHint
	case codec.Mesh:
		return diag.ModelMesh, exportHint
	case codec.Animation:
		return diag.ModelAnimation, exportHint
	case codec.NotFinite:
		return diag.ModelNotFinite, "find the vertex, bone or key without a place in the program that made the model, and export again"
	case codec.Extension:
		return diag.ModelExtension, "make sure that the game's loader knows this extension"
	case codec.DataURI:
		return diag.ModelDataURI, exportHint
	}
	return diag.ModelProperty, exportHint
}

// problem turns a finding into a problem with a message.
func (m *model) problem(f *codec.Finding) *processor.Problem {
	c, hint := code(f.Problem)
	if f.Level == codec.Loadable && m.settings.Validate == "strict" {
		hint = warnHint
	}
	return &processor.Problem{Code: string(c), Line: f.Line, Column: f.Column, Length: f.Length, Text: f.Error(), Hint: hint}
}

// at is a problem about a value of the document.
func (m *model) at(v *codec.Value, code diag.Code, hint, format string, args ...any) *processor.Problem {
	p := m.problem(m.doc.Find(v, codec.Property, codec.Broken, format, args...))
	p.Code, p.Hint = string(code), hint
	return p
}

func (m *model) fail(p *processor.Problem) { m.problems = append(m.problems, p) }

// judge turns a report into errors and warnings.
func (m *model) judge(report codec.Report) {
	failed := report.Broken
	for _, f := range report.Findings {
		p := m.problem(f)
		if f.Level == codec.Broken || f.Level == codec.Loadable && m.settings.Validate == "strict" {
			failed = true
			m.fail(p)
		} else {
			m.job.Warn(*p)
		}
	}
	if report.More == 0 {
		return
	}
	more := processor.Problem{
		Code: string(diag.ModelMoreProblems),
		Text: fmt.Sprintf("not shown: %d more", report.More),
		Hint: "they are often the same; fix those above first",
	}
	if failed {
		m.fail(&more)
	} else {
		m.job.Warn(more)
	}
}
