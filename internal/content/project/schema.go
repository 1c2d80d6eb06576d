package project

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/settings"
	"github.com/kiln-pipeline/kiln/processor"
)

// SchemaID is the id of the schema; with "#/$defs/rules-file" appended, that of rules.toml.
const SchemaID = "https://kiln-pipeline.github.io/schema/kiln.schema.json"

// object is a JSON object. encoding/json writes its keys sorted, so the schema's bytes are always the same.
type object = map[string]any

// Schema is the JSON schema (draft 2020-12) of kiln.toml for editors, with that of rules.toml under $defs. It
// accepts every file that Parse accepts. Settings of named processors are checked by infos; other names are
// accepted, because they may be the project's own.
func Schema(infos []processor.Info) []byte {
	defs := object{
		"name":     object{"type": "string", "pattern": settings.Name().String()},
		"folder":   object{"type": "string", "minLength": 1, "pattern": `^[^/\\]`},
		"glob":     object{"type": "string", "minLength": 1, "maxLength": maxPattern, "pattern": "^[^/]"},
		"settings": object{"type": "object"},
		"platform": platformSchema(infos),
		"rule":     ruleSchema(infos),
		"asset":    assetSchema(infos),
		"rules-file": closed("Rules for the folder that this file lies in, and below.", object{
			"rules": listOf("#/$defs/rule"), "assets": listOf("#/$defs/asset"),
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
		"assets":     listOf("#/$defs/asset"),
		"processors": object{"type": "array", "items": customSchema()},
		"vars": object{
			"type": "object", "description": "Values by name: ${NAME} in any string stands for one. --set NAME=VALUE gives another.",
			"propertyNames": object{"pattern": variableName().String()},
			"additionalProperties": object{"anyOf": []object{{"type": "string"}, closed("A value from the environment.", object{
				"env":     text("The environment variable that it comes from."),
				"default": object{"type": "string", "description": "The value if that is not set, or empty."},
			}, "env")}},
		},
		"groups": object{
			"type": "object", "propertyNames": ref("name"), "additionalProperties": listOf("#/$defs/glob"),
			"description": "Lists of patterns by name, which @name stands for in other lists and on the command line.",
		},
		"parcels":   object{"type": "array", "items": parcelSchema()},
		"constants": object{"type": "array", "items": constantsSchema()},
		"build": closed("How the project is built.", object{
			"workers": object{"type": "integer", "minimum": 1, "maximum": 1024, "description": "Jobs at once; without it, one a processor core."},
			"memory":  object{"type": []string{"string", "integer"}, "description": `What running jobs may use together: "2GB", "512MiB".`},
		}),
		"cache": closed("Where a team shares results.", object{
			"path":     object{"type": "string", "description": "A folder, on this machine or a network drive; may begin with ~/."},
			"remote":   object{"type": "string", "pattern": "^grpcs?://", "description": "A server that speaks the Remote Execution API v2."},
			"mode":     object{"enum": []string{"read", "read-write"}, "description": "Whether results are only read, or written too."},
			"max_size": object{"type": []string{"string", "integer"}, "description": `What the folder may have: "50GB". The default is 20 GiB.`},
			"trust":    object{"enum": []string{"any", "signed"}, "default": "any", "description": "Whether only signed results count."},
			"keys":     object{"type": "array", "items": object{"type": "string"}, "description": "Public keys (minisign) whose signatures count."},
		}),
		"execution": executionSchema(),
		"run":       runSchema(),
	}, "project")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = SchemaID
	root["title"] = File
	root["$defs"] = defs
	orVariable(root)
	data, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // it contains nothing that JSON cannot represent
	}
	return append(data, '\n')
}

func runSchema() object {
	return closed("How the game is started.", object{
		"command": object{"type": "array", "minItems": 1, "items": object{"type": "string", "minLength": 1},
			"description": "The game and its arguments. A program with a slash is relative to the project folder. No shell."},
		"cwd": object{"$ref": "#/$defs/folder", "description": "The folder that it is started in; without it, the project folder."},
		"env": object{"type": "object", "additionalProperties": object{"type": "string"}, "description": "Environment variables besides those of Kiln."},
	}, "command")
}

func executionSchema() object {
	return closed("Where jobs run besides this machine.", object{
		"remote":     object{"type": "string", "pattern": "^grpcs?://", "description": "A server of the Remote Execution API v2, with workers."},
		"jobs":       object{"type": "integer", "minimum": 1, "maximum": 1024, "default": 32, "description": "Jobs there at once."},
		"timeout":    text(`How long a job may take there, besides ten times what it took last: "2m".`),
		"all":        object{"type": "boolean", "default": false, "description": "Whether all that can run there does, however quick it is."},
		"properties": object{"type": "object", "additionalProperties": object{"type": "string"}, "description": "What a worker has to have."},
		"kiln":       text("The program that workers run, if their system is another one; relative to the project folder."),
	})
}

// orVariable accepts variables where the schema restricts strings.
func orVariable(node any) {
	switch x := node.(type) {
	case []object:
		for _, o := range x {
			orVariable(o)
		}
	case object:
		for key, inner := range x {
			named, _ := inner.(object)
			switch key {
			case "properties", "$defs": // schemas by name
				for _, o := range named {
					orVariable(o)
				}
			case "propertyNames", "if":
			default:
				orVariable(inner)
			}
		}
		_, words := x["enum"].([]string)
		if words = words || x["pattern"] != nil || x["format"] != nil; !words || x["anyOf"] != nil {
			return
		}
		strict := object{}
		for _, key := range []string{"type", "enum", "pattern", "format"} {
			if v, ok := x[key]; ok {
				strict[key] = v
				delete(x, key)
			}
		}
		x["anyOf"] = []object{strict, {"type": "string", "pattern": `\$\{`}}
	}
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
		"listed":      object{"type": "boolean", "description": "parcels.json lists its resources."},
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

const needsDoc = "Patterns of assets whose products are brought up to date first: jobs run again when these change. A program sees them."

func metaSchema() object { return object{"type": []string{"string", "number", "boolean"}} }

func globs(doc string) object {
	return object{"type": "array", "items": ref("glob"), "description": doc}
}

func ref(name string) object { return object{"$ref": "#/$defs/" + name} }

func listOf(ref string) object { return object{"type": "array", "items": object{"$ref": ref}} }

// closed is a table with these keys and no others.
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
			"type": "array", "minItems": 1, "uniqueItems": true, "default": []string{"assets"},
			"items": object{"anyOf": []object{ref("folder"), closed("A folder that may be elsewhere on another machine.", object{
				"path": text("The folder: absolute, or relative to the project folder."),
				"name": object{"$ref": "#/$defs/name", "description": "What stands for the folder in all that is remembered."},
			}, "path", "name")}},
			"description": "Folders with source files. A later one overlays an earlier one file by file.",
		},
		"output": object{"$ref": "#/$defs/folder", "default": "build", "description": "Folder that products go to. It can be deleted at any time."},
		"kiln": object{
			"$ref": "#/$defs/folder", "description": "The Go package of the project's own kiln, by its folder in the project. Whichever kiln is called compiles and runs it.",
		},
		"ignore": texts("Files that are none, in .gitignore syntax."),
		"requires": object{
			"type": "string", "pattern": `^\s*(>=|<=|>|<|=)\s*v?[0-9]+(\.[0-9]+){0,2}\S*\s*(,\s*(>=|<=|>|<|=)\s*v?[0-9]+(\.[0-9]+){0,2}\S*\s*)*$`,
			"description": "The versions of Kiln that can build the project, like >=0.4.",
		},
	}, "name")
}

func platformSchema(infos []processor.Info) object {
	keys := object{Textures: texturesSchema(infos)}
	for _, info := range infos {
		keys[info.Name] = object{"$ref": "#/$defs/settings." + info.Name, "description": info.Summary}
	}
	return object{
		"type": "object", "description": "Settings by processor, under all rules.",
		"properties": keys, "additionalProperties": ref("settings"),
	}
}

// texturesSchema is the schema of a platform's policy for textures. The processor of textures documents its settings.
func texturesSchema(infos []processor.Info) object {
	keys := object{}
	for _, name := range TextureSettings {
		keys[name] = object{"type": "string"}
	}
	for _, info := range infos {
		if info.Name != "texture" {
			continue
		}
		for _, s := range settings.Describe(info) {
			if keys[s.Name] != nil {
				one := settingSchema(s)
				delete(one, "default") // a policy has no defaults
				keys[s.Name] = one
			}
		}
	}
	return closed("What all processors that make textures get, unless their own settings say otherwise.", keys)
}

// processorName lists names for editors, and accepts others.
func processorName(infos []processor.Info) object {
	choices := []object{}
	for _, info := range infos {
		choices = append(choices, object{"const": info.Name, "description": info.Summary})
	}
	choices = append(choices, object{"const": "none", "description": "The files are not assets; others may read them."}, ref("name"))
	return object{"anyOf": choices, "description": "What makes products of the files."}
}

// processorList is for rules with several processors.
func processorList(infos []processor.Info) object {
	return object{
		"type": "array", "minItems": 1, "uniqueItems": true, "items": processorName(infos),
		"description": "Several processors that each make products of the same assets. A table in settings under the name of one of them is for it alone.",
	}
}

// ruleSchema connects the settings of a rule to its processor.
func ruleSchema(infos []processor.Info) object {
	platform := closed("What the rule says for one platform only.", object{
		"processor": processorName(infos), "processors": processorList(infos), "settings": ref("settings"),
	})
	rule := closed("What happens to the files that match. Later and deeper rules override field by field.", object{
		"match": object{
			"anyOf": []object{ref("glob"), {"type": "array", "minItems": 1, "items": ref("glob")}},
			"description": "Glob, @group, or a list of these in which ! takes out what a pattern means; relative to this file's folder, or to the " +
				"source roots in kiln.toml. ** is any number of folders; a slash at the end makes an asset of a folder.",
		},
		"processor":  processorName(infos),
		"processors": processorList(infos),
		"settings":   ref("settings"),
		"stage":      object{"$ref": "#/$defs/name", "description": "The rule counts only with --stage NAME."},
		"meta": object{
			"type": "object", "description": "Values under keys of your choice: rules override each other. Only jobs that list assets see them.",
			"additionalProperties": object{"anyOf": []object{metaSchema(), {"type": "array", "items": metaSchema()}}},
		},
		"platforms": object{"type": "object", "additionalProperties": platform, "description": "What differs by platform."},
		"id":        text("Another id for the one asset that match names, or, made of {folder}, {parent}, {name}, {stem}, {ext}, for all."),
		"import":    importSchema(),
		"inputs":    globs("Source files by their globs: the jobs run again when one of them changes, comes or goes. A program sees them."),
		"needs":     globs(needsDoc),
		"ignore": globs("What jobs find and is harmless: source files by their globs, env:NAME, tool:NAME. " +
			"A change of these alone runs no job: its result is held by ignore."),
		"follow": object{
			"type": "boolean", "description": "Whether these assets go into every parcel in which something refers to them, required or not.",
		},
		"allow": object{
			"type": "array", "items": object{"type": "string", "pattern": "^K[0-9]{4}$"},
			"description": "Codes of warnings that are accepted: they are not shown for these assets, and not counted.",
		},
		"uuid": object{
			"type": "string", "format": "uuid",
			"description": "A fixed UUID for the one asset that match names, so that it can be renamed.",
		},
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

// assetSchema is the schema of an entry of [[assets]]: a rule with a source instead of a match.
func assetSchema(infos []processor.Info) object {
	asset := ruleSchema(infos)
	asset["description"] = "An asset by itself: another one of the same source file, or one without a file."
	keys := asset["properties"].(object)
	delete(keys, "match")
	keys["id"] = text("What the asset is called. Its products are named after it.")
	keys["source"] = object{
		"$ref":        "#/$defs/folder",
		"description": "Its source file, relative to this file's folder, or to the source roots in kiln.toml. Without it, it has none.",
	}
	keys["uuid"] = object{"type": "string", "format": "uuid", "description": "A fixed UUID for the asset, so that its id can be changed."}
	asset["required"] = []string{"id"}
	return asset
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
			"anyOf": []object{{"type": "array", "items": ref("glob")}, {"enum": []string{"declared", "traced", "depfile"}}},
			"description": "Source files by their globs: its jobs run again when one of them changes, comes or goes, and a program sees these and no others. " +
				`Of a command also "traced": what it is seen to read; or "depfile": what it says that it read.`,
		},
		"needs":   globs(needsDoc),
		"network": object{"type": "boolean", "description": "The program may talk to other machines."},
		"summary": text("A line for `kiln processors`."),
		"version": object{"type": "integer", "minimum": 1, "description": "Raise it to run every job again when Kiln cannot know that the output changes."},
		"folder":  object{"type": "boolean", "description": "Its assets are folders."},
		"timeout": text(`How long it may run: "90s", "2m".`),
		"memory":  object{"type": []string{"string", "integer"}, "description": `What one run needs, until one was measured: "512MiB".`},
		"env":     texts("Environment variables that it gets."),
		"properties": object{
			"type": "object", "additionalProperties": object{"type": "string"},
			"description": "What a worker of a farm has to have that runs its jobs.",
		},
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
		if s.Of != "" {
			return ref("settings." + s.Of)
		}
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
