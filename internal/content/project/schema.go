package project

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/processor"
)

// SchemaID names the schema; "#/$defs/rules-file" after it is that of rules.toml.
const SchemaID = "https://kiln-pipeline.github.io/schema/kiln.schema.json"

// object is a piece of JSON. encoding/json writes its keys sorted, so the schema's bytes are always the same.
type object = map[string]any

// Schema is the JSON schema (draft 2020-12) of kiln.toml for editors, with that of rules.toml under
// $defs. It accepts every file that Parse accepts. Where a processor is named, its settings are those of infos;
// names that are not among infos are let through, for they may be the project's own.
func Schema(infos []processor.Info) []byte {
	defs := object{
		"name":     object{"type": "string", "pattern": settings.Name().String()},
		"folder":   object{"type": "string", "minLength": 1, "pattern": `^[^/\\]`},
		"glob":     object{"type": "string", "minLength": 1, "maxLength": maxPattern, "pattern": "^[^/]"},
		"settings": object{"type": "object"},
		"platform": platformSchema(infos),
		"rule":     ruleSchema(infos),
		"rules-file": closed("Rules for the folder that this file lies in, and below.", object{
			"rules": listOf("#/$defs/rule"),
		}),
	}
	for _, info := range infos {
		defs["settings."+info.Name] = settingsSchema(info)
	}
	root := closed("A Kiln project.", object{
		"project": projectSchema(),
		"platforms": object{
			"type": "object", "description": "What to build for. Without any there is one platform, pc.",
			"propertyNames": ref("name"), "additionalProperties": ref("platform"),
		},
		"rules":      listOf("#/$defs/rule"),
		"processors": object{"type": "array", "items": customSchema()},
		"parcels":    object{"type": "array", "items": parcelSchema()},
		"constants":  object{"type": "array", "items": constantsSchema()},
		"build": closed("How the project is built.", object{
			"workers": object{"type": "integer", "minimum": 1, "maximum": 1024, "description": "Jobs at once; without it, one a processor core."},
			"memory":  object{"type": []string{"string", "integer"}, "description": `What running jobs may use together: "2GB", "512MiB".`},
		}),
	}, "project")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = SchemaID
	root["title"] = File
	root["$defs"] = defs
	data, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // there is nothing in it that JSON does not have
	}
	return append(data, '\n')
}

func parcelSchema() object {
	size := object{"type": []string{"string", "integer"}, "description": `Bytes that the parcel's file should not exceed: "64MB".`}
	return closed("Products that the game loads at once, with all that they need.", object{
		"name":        object{"$ref": "#/$defs/name", "description": "The parcel's file name."},
		"assets":      object{"type": "array", "items": ref("glob"), "description": "Globs of asset ids."},
		"platforms":   texts("Platforms that it is made for; without it, all."),
		"shared_with": text("The parcel that takes what several of its sharers need."),
		"split":       object{"type": "boolean", "description": "What several split parcels need goes into parcels made for it."},
		"budget":      size,
		"over_budget": object{"enum": []string{"fail", "warn"}, "description": "What it means if the parcel is over its budget."},
		"compression": object{"enum": []string{"zstd", "none"}, "description": "How its resources are stored."},
		"stored":      object{"type": "array", "items": ref("glob"), "description": "Globs of asset ids that are stored as they are."},
		"align":       object{"enum": []int{16, 32, 64, 128, 256, 512, 1024, 2048, 4096}, "description": "Alignment in the file of what is stored as it is."},
		"dictionary":  text("A Zstandard dictionary, relative to the project folder."),
		"order":       text("A file that says what the game loads first, relative to the project folder."),
	}, "name", "assets")
}

func constantsSchema() object {
	return closed("A source file for the game's code, with a name for each resource.", object{
		"language": object{"enum": Languages},
		"package":  text("Package, namespace or module."),
		"template": text("A template of one's own, relative to the project folder."),
		"file":     text("Where it is written, relative to the project folder; without it, in the output folder."),
	}, "language")
}

func ref(name string) object { return object{"$ref": "#/$defs/" + name} }

func listOf(ref string) object { return object{"type": "array", "items": object{"$ref": ref}} }

// closed is a table that has these keys and no others.
func closed(doc string, keys object, required ...string) object {
	o := object{"type": "object", "description": doc, "properties": keys, "additionalProperties": false}
	if required != nil {
		o["required"] = required
	}
	return o
}

func text(doc string) object { return object{"type": "string", "minLength": 1, "description": doc} }

func texts(doc string) object {
	return object{"type": "array", "items": object{"type": "string", "minLength": 1}, "description": doc}
}

func projectSchema() object {
	return closed("The project itself.", object{
		"name": text("What the project is called."),
		"roots": object{
			"type": "array", "minItems": 1, "uniqueItems": true, "items": ref("folder"), "default": []string{"assets"},
			"description": "Folders with source files. A later one overlays an earlier one file by file.",
		},
		"output": object{"$ref": "#/$defs/folder", "default": "build", "description": "Folder that products go to. It can be deleted at any time."},
		"kiln": object{
			"$ref": "#/$defs/folder", "description": "The Go package of the project's own kiln, by its folder in the project. Whichever kiln is called compiles and runs it.",
		},
		"ignore": texts("Files that are none, in .gitignore syntax."),
	}, "name")
}

func platformSchema(infos []processor.Info) object {
	keys := object{}
	for _, info := range infos {
		keys[info.Name] = object{"$ref": "#/$defs/settings." + info.Name, "description": info.Summary}
	}
	return object{
		"type": "object", "description": "Settings by processor, under all rules.",
		"properties": keys, "additionalProperties": ref("settings"),
	}
}

// processorName lists what editors offer, and lets other names through.
func processorName(infos []processor.Info) object {
	choices := []object{}
	for _, info := range infos {
		choices = append(choices, object{"const": info.Name, "description": info.Summary})
	}
	choices = append(choices, object{"const": "none", "description": "The files are no assets; others may read them."}, ref("name"))
	return object{"anyOf": choices, "description": "What makes products of the files."}
}

// processorList is for rules that name several.
func processorList(infos []processor.Info) object {
	return object{
		"type": "array", "minItems": 1, "uniqueItems": true, "items": processorName(infos),
		"description": "Several processors that each make products of the same assets. A table in settings under the name of one of them is for it alone.",
	}
}

// ruleSchema ties the settings of a rule to the processor that it names.
func ruleSchema(infos []processor.Info) object {
	platform := closed("What the rule says for one platform only.", object{
		"processor": processorName(infos), "processors": processorList(infos), "settings": ref("settings"),
	})
	rule := closed("What happens to the files that match. Later and deeper rules override field by field.", object{
		"match":      object{"$ref": "#/$defs/glob", "description": "Glob relative to this file's folder, or to the source roots in kiln.toml. ** is any number of folders; a slash at the end makes an asset of a folder."},
		"processor":  processorName(infos),
		"processors": processorList(infos),
		"settings":   ref("settings"),
		"platforms":  object{"type": "object", "additionalProperties": platform, "description": "What differs by platform."},
		"id":         text("Another id for the one asset that match names."),
		"import":     importSchema(),
		"follow":     object{"type": "boolean", "description": "Whether these assets go into every parcel in which something refers to them, required or not."},
		"uuid":       object{"type": "string", "format": "uuid", "description": "A fixed UUID for the one asset that match names, so that it can be renamed."},
	}, "match")
	namesOne := []object{{"required": []string{"processor"}}, {"required": []string{"processors"}}}
	notBoth := object{"not": object{"required": []string{"processor", "processors"}}}
	here, onPlatform := []object{notBoth}, []object{notBoth}
	for _, info := range infos {
		is := object{"properties": object{"processor": object{"const": info.Name}}, "required": []string{"processor"}}
		has := object{"properties": object{"settings": ref("settings." + info.Name)}}
		onPlatform = append(onPlatform, object{"if": is, "then": has})
		inherited := object{"if": object{"not": object{"anyOf": namesOne}}, "then": has}
		here = append(here, object{"if": is, "then": object{"properties": object{
			"settings": ref("settings." + info.Name), "platforms": object{"additionalProperties": inherited},
		}}})
	}
	platform["allOf"], rule["allOf"] = onPlatform, here
	return rule
}

func customSchema() object {
	o := closed("A processor of the project's own.", object{
		"name":       object{"$ref": "#/$defs/name", "description": "How rules call it."},
		"extensions": object{"type": "array", "items": object{"type": "string", "pattern": `^\.[^A-Z/\\]+$`}, "description": "Extensions it is the default processor for."},
		"script":     text("A Starlark script, by its path in the project."),
		"wasm": object{
			"anyOf":       []object{{"type": "string", "minLength": 1}, closed("A Go package that is compiled to a module.", object{"go": text("Its folder in the project.")}, "go")},
			"description": `A WebAssembly module, by its path in the project, or { go = "folder" } of a Go package that is compiled to one.`,
		},
		"command": object{"type": "array", "minItems": 1, "items": object{"type": "string", "minLength": 1}, "description": "A program and its arguments: {in}, {out} and others are replaced. No shell."},
		"output":  text("Extension of the main product. Without it, the product keeps the file's name."),
		"outputs": object{"type": "object", "propertyNames": ref("name"), "additionalProperties": object{"type": "string"}, "description": "Extensions of further products by name."},
		"inputs": object{
			"anyOf":       []object{{"type": "array", "items": ref("glob")}, {"enum": []string{"declared", "traced", "depfile"}}},
			"description": `What the program may read besides the asset; or "traced": what it is seen to read; or "depfile": what it says that it read.`,
		},
		"network":  object{"type": "boolean", "description": "The program may talk to other machines."},
		"summary":  text("A line for `kiln processors`."),
		"version":  object{"type": "integer", "minimum": 1, "description": "Raise it to run every job again when Kiln cannot know that the output changes."},
		"folder":   object{"type": "boolean", "description": "Its assets are folders."},
		"timeout":  text(`How long it may run: "90s", "2m".`),
		"memory":   object{"type": []string{"string", "integer"}, "description": `What one run needs, until one was measured: "512MiB".`},
		"env":      texts("Environment variables that it gets."),
		"settings": object{"type": "object", "description": "Settings that rules may give: name = default, or name = { default, type, doc }."},
	})
	o["oneOf"] = []object{{"required": []string{"script"}}, {"required": []string{"name", "wasm"}}, {"required": []string{"name", "command"}}}
	return o
}

func settingsSchema(info processor.Info) object {
	root := closed("Settings of "+info.Name+".", object{})
	for _, s := range settings.Describe(info) {
		at, path := root, strings.Split(s.Name, ".")
		for _, name := range path[:len(path)-1] {
			keys := at["properties"].(object)
			if keys[name] == nil {
				keys[name] = closed("", object{})
				delete(keys[name].(object), "description")
			}
			at = keys[name].(object)
		}
		at["properties"].(object)[path[len(path)-1]] = settingSchema(s)
	}
	return root
}

func settingSchema(s settings.Setting) object {
	o := valueSchema(s.Type, s)
	o["description"] = s.Doc
	if v := reflect.ValueOf(s.Default); v.Kind() != reflect.Slice && v.Kind() != reflect.Map || v.Len() > 0 {
		o["default"] = s.Default
	}
	return o
}

func valueSchema(kind string, s settings.Setting) object {
	o := object{}
	if elem, ok := strings.CutPrefix(kind, "list of "); ok {
		return object{"type": "array", "items": valueSchema(elem, s)}
	}
	switch kind {
	case "table of string":
		return object{"type": "object", "additionalProperties": valueSchema("string", s)}
	case "table":
		return object{"type": "object"}
	case "string":
		if s.Values != nil {
			o["enum"] = s.Values
		}
	default:
		for key, bound := range map[string]string{"minimum": s.Min, "maximum": s.Max} {
			if bound != "" {
				x, _ := strconv.ParseFloat(bound, 64)
				o[key] = x
			}
		}
	}
	o["type"] = kind
	return o
}

func importSchema() object {
	step := []object{
		{"type": "string", "minLength": 1},
		closed("A step with settings.", object{"processor": object{"type": "string", "minLength": 1}, "settings": ref("settings")}, "processor"),
	}
	return object{
		"description": "Processors that work on the source file first, one after the other: the rule's processor gets what the last one made.",
		"anyOf":       []object{step[0], step[1], {"type": "array", "items": object{"anyOf": step}}},
	}
}
