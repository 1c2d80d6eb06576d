// Package data is the processor of structured data: JSON, TOML, YAML, CSV and properties become canonical JSON
// or MessagePack, checked against a JSON schema if there is one.
//
// Its rules: products do not depend on how the source was written; a schema and everything that it
// refers to are source dependencies; what the schema marks as the name of an asset becomes a product
// dependency, or an error with a place. Nothing is fetched from a network.
package data

import (
	"context"
	"path"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/media/codec/document"
	"github.com/kiln-pipeline/kiln/processor"
)

// Settings of the data processor.
type Settings struct {
	Format     string `toml:"format" values:"json,msgpack" doc:"What the game loads: canonical JSON or MessagePack."`
	Input      string `toml:"input" values:"auto,json,relaxed,toml,yaml,csv,tsv,properties" doc:"How the source is written. auto goes by the extension; relaxed is JSON with comments, trailing commas and text without quotes (JSON5, libGDX), tsv a table with tabs between cells."`
	Schema     string `toml:"schema" doc:"JSON schema to check against: a path relative to the asset's folder, or from the source root if it begins with a slash."`
	References string `toml:"references" values:"path,uuid" doc:"What is written in place of a reference to another asset: its id or its UUID."`
	Header     bool   `toml:"header" doc:"Whether the first row of a CSV file has the names of its columns. Without them, a row is an array."`
	Delimiter  string `toml:"delimiter" values:"comma,semicolon,tab" doc:"What stands between the cells of a CSV file."`
	CSVTypes   string `toml:"csv_types" values:"infer,string" doc:"Whether the cells of a CSV file become numbers, booleans and null where they look so, or are strings."`
}

// Processor is the data processor.
type Processor struct{ shelf *shelf }

// New returns the processor, with a cache of schemas for all its jobs.
func New() Processor { return Processor{&shelf{}} }

// Info describes the processor.
func (Processor) Info() processor.Info {
	return processor.Info{
		Name:       "data",
		Version:    7,
		Summary:    "JSON, TOML, YAML, CSV and properties to canonical JSON or MessagePack, checked against a JSON schema",
		Extensions: document.Extensions(),
		Settings:   &Settings{Format: "json", Input: "auto", References: "path", Delimiter: "comma", CSVTypes: "infer", Header: true},
		Products: []processor.ProductType{
			{Type: "data", Extension: ".json", Doc: "Canonical JSON. A .json source keeps its name."},
			{Type: "data", Extension: ".msgpack", Doc: "MessagePack, with format = \"msgpack\"."},
		},
		Memory: 128 << 20,
	}
}

// Process makes one file of data.
func (p Processor) Process(ctx context.Context, job processor.Job) error {
	s := processor.SettingsOf[Settings](job)
	v, err := readSource(ctx, job, s)
	if err != nil {
		return err
	}
	named, err := schemaOf(job, s, &v)
	if err != nil {
		return err
	}
	out := processor.Output{Type: "data", Extension: ".json"}
	if named != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		schema, err := p.loadSchema(ctx, job, *named)
		if err != nil {
			return err
		}
		places, err := check(ctx, schema, &v)
		if err != nil {
			return err
		}
		if out.References, err = resolve(job, s, places); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.Format == "msgpack" {
		out.Extension = ".msgpack"
		return job.Write(out, document.AppendMessagePack(nil, &v))
	}
	if strings.EqualFold(path.Ext(job.Asset().ID), ".json") {
		out.Extension = ""
	}
	return job.Write(out, document.AppendJSON(nil, &v))
}
