package data

import (
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// names checks the keyword propertyNames a second time: the validator's own errors about it
// (as of v6.0.3) share memory with what it does next, so that their places are not to be trusted.
type names struct{ schema *jsonschema.Schema }

func compileNames(ctx *jsonschema.CompilerContext, obj map[string]any) (jsonschema.SchemaExt, error) {
	if _, ok := obj["propertyNames"]; !ok {
		return nil, nil
	}
	return &names{ctx.Enqueue([]string{"propertyNames"})}, nil
}

// Validate adds an error for each key that is not as it should be.
func (n *names) Validate(ctx *jsonschema.ValidatorContext, v any) {
	o, _ := v.(map[string]any)
	for key := range o {
		if n.schema.Validate(key) != nil {
			ctx.AddError(&badName{&kind.PropertyNames{Property: key}})
		}
	}
}

// badName is a key that does not fit propertyNames. It embeds the validator's own kind for its methods.
type badName struct{ *kind.PropertyNames }
