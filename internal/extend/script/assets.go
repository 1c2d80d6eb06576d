package script

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/kiln-pipeline/kiln/processor"
)

// assets(pattern) lists the assets that a pattern of ids matches.
func (j *jobValue) assets(c *callArgs) (starlark.Value, error) {
	var pattern string
	if err := c.unpack("pattern", &pattern); err != nil {
		return nil, err
	}
	found, err := j.job.Assets(pattern)
	if err != nil {
		return nil, jobFailed("", err)
	}
	var list []starlark.Value
	for _, a := range found {
		settings, err := readJSON(c.thread, []byte(a.Settings))
		if err != nil {
			return nil, fmt.Errorf("%s: settings of %s: %w", c.name, a.ID, err)
		}
		meta, err := readJSON(c.thread, []byte(a.Meta))
		if err != nil {
			return nil, fmt.Errorf("%s: metadata of %s: %w", c.name, a.ID, err)
		}
		list = append(list, starlarkstruct.FromStringDict(starlark.String("asset"), starlark.StringDict{
			"id": starlark.String(a.ID), "uuid": starlark.String(a.UUID), "path": starlark.String(a.Path), "folder": starlark.Bool(a.Folder),
			"processor": starlark.String(a.Processor), "type": starlark.String(a.Type), "settings": settings, "meta": meta,
		}))
	}
	return starlark.NewList(list), nil
}

// resourceID(product) returns the number that kiln.ids has for a product of this asset, or None.
func (j *jobValue) resourceID(c *callArgs) (starlark.Value, error) {
	var product string
	if err := c.unpack("product?", &product); err != nil {
		return nil, err
	}
	if id, ok := j.job.ResourceID(product); ok {
		return starlark.MakeUint64(uint64(id)), nil
	}
	return starlark.None, nil
}

// tryProducts(asset, platform=, processor=) returns the products of an asset, or None if it failed or does not
// exist.
func (j *jobValue) tryProducts(c *callArgs) (starlark.Value, error) {
	var of processor.Ask
	if err := c.unpack("asset", &of.Asset, "platform?", &of.Platform, "processor?", &of.Processor); err != nil {
		return nil, err
	}
	j.clock.pause()
	found, ok, err := j.job.TryProducts(of)
	j.clock.resume()
	if err != nil {
		return nil, jobFailed("", err)
	}
	if !ok {
		return starlark.None, nil
	}
	return productList(found), nil
}
