package script

import (
	"encoding/json"
	"fmt"

	starlarkjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"

	"github.com/kiln-pipeline/kiln/processor"
)

// request(processor, settings={}, path=None, product=None, data=None, ext="", name="") returns the
// products that another processor makes of a source file, a product, data, or nothing.
func (j *jobValue) request(c *callArgs) (starlark.Value, error) {
	var r processor.Request
	var settings *starlark.Dict
	var data, product starlark.Value
	err := c.unpack("processor", &r.Processor, "settings?", &settings, "path?", &r.Path, "product?", &product, "data?", &data, "ext?", &r.Extension,
		"name?", &r.Name)
	if err != nil {
		return nil, err
	}
	if settings != nil && settings.Len() > 0 {
		text, err := starlark.Call(c.thread, starlarkjson.Module.Members["encode"], starlark.Tuple{settings}, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: settings: %w", c.name, err)
		}
		encoded, _ := starlark.AsString(text)
		if err := json.Unmarshal([]byte(encoded), &r.Settings); err != nil {
			return nil, fmt.Errorf("%s: settings: %w", c.name, err)
		}
	}
	if data != nil && data != starlark.None {
		b, err := bytesOf(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		if r.Bytes = b; b == nil {
			r.Bytes = []byte{}
		}
	}
	if product != nil && product != starlark.None {
		p, err := productOf(c, product)
		if err != nil {
			return nil, err
		}
		r.Product = &p
	}
	j.clock.pause()
	found, err := j.job.Request(r)
	j.clock.resume()
	if err != nil {
		return nil, jobFailed(r.Path, err)
	}
	return productList(found[0]), nil
}

// adopt(product, name="", type="", ext="") makes a product of the job's asset from one that request or products
// returned.
func (j *jobValue) adopt(c *callArgs) (starlark.Value, error) {
	var v starlark.Value
	var out processor.Output
	if err := c.unpack("product", &v, "name?", &out.Name, "type?", &out.Type, "ext?", &out.Extension); err != nil {
		return nil, err
	}
	if j.asks {
		return nil, fmt.Errorf("%s: products are written in write(job, responses), when the atlas is laid out", c.name)
	}
	p, err := productOf(c, v)
	if err != nil {
		return nil, err
	}
	return starlark.None, jobFailed("", j.job.Adopt(p, out))
}

func productOf(c *callArgs, v starlark.Value) (processor.Product, error) {
	p, ok := v.(*productValue)
	if !ok {
		return processor.Product{}, fmt.Errorf("%s: got %s, want a product that job.products or job.request returned", c.name, v.Type())
	}
	return p.product, nil
}
