package atlas

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/bits"
	"slices"
	"strconv"

	"github.com/kiln-pipeline/kiln/processor"
)

// Images are collected in groups, by hash of name, so that an edit causes reading the images of one group and the
// results of all other groups, and not all images: of 2,000 it asks for 64 and 32.
const groupSize = 64 // images, about

// groups returns the parts that read images by the number of their group, in the given order.
func groups(parts []string) map[int][]string {
	all := map[int][]string{}
	count := uint32(1) << bits.Len(uint(max(len(parts)-1, 0)/groupSize))
	for _, part := range parts {
		h := fnv.New32a()
		h.Write([]byte(part))
		n := int(h.Sum32() % count)
		all[n] = append(all[n], part)
	}
	return all
}

// list is the part that finds the images. It makes
//
//	files    the paths of all image files
//	parts    those that read the images, which may be fewer, in the order of the images' names
//	group-N  those of one group
func (p proc) list(job processor.Job) error {
	plans, err := newPlans(job)
	if err != nil {
		return err
	}
	if err := plans.s.check(); err != nil {
		return err
	}
	files, err := find(job, plans.s)
	if err != nil {
		return err
	}
	if plans.s.Parcel != "" {
		if err := checkHeld(job, plans.s); err != nil {
			return err
		}
	}
	if err := plans.look(files); err != nil {
		return err
	}
	if len(plans.images) == 0 && plans.s.Parcel == "" { // what a parcel needs may become known later in the build
		return empty(job.Asset().Path, plans.s)
	}
	parts := make([]string, len(plans.images))
	for i, src := range plans.images {
		parts[i] = src.part
	}
	if err := errors.Join(writeJSON(job, "files", files), writeJSON(job, "parts", parts)); err != nil {
		return err
	}
	all := groups(parts)
	for _, n := range sorted(all) {
		if err := writeJSON(job, groupName(n), all[n]); err != nil {
			return err
		}
	}
	return nil
}

func groupName(n int) string { return "group-" + strconv.Itoa(n) }

func sorted(groups map[int][]string) []int {
	var all []int
	for n := range groups {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

// group is the part that collects the images of one group, in their order. For each scale it makes
//
//	sizes   the input of the layout
//	hashes  for each image a 32-bit number, little-endian: the number of cuts, followed by their hashes
func (p proc) group(job processor.Job, number string) error {
	plans, err := newPlans(job)
	if err != nil {
		return err
	}
	var members []string
	if _, err := readPart(job, "list", "group-"+number, &members); err != nil {
		return err
	}
	made, err := job.Parts(members...)
	if err != nil {
		return err
	}
	for _, scale := range plans.s.scales() {
		all := make([]sizes, len(members))
		var hashes []byte
		for i := range members {
			if err := readJSON(job, made[i], at("cuts", scale), &all[i]); err != nil {
				return err
			}
			hashes = binary.LittleEndian.AppendUint32(hashes, uint32(len(all[i].Cuts)))
			for n := range all[i].Cuts {
				hashes = append(hashes, all[i].Cuts[n].Hash...)
				all[i].Cuts[n].Hash = nil
			}
		}
		if err := errors.Join(writeJSON(job, at("sizes", scale), all), writeHidden(job, at("hashes", scale), hashes)); err != nil {
			return err
		}
	}
	return nil
}

// grouped is the results of the groups.
type grouped struct {
	numbers []int
	members map[int][]string
	made    [][]processor.Product
}

// askGroups has all groups done.
func askGroups(job processor.Job, parts []string) (*grouped, error) {
	g := &grouped{members: groups(parts)}
	g.numbers = sorted(g.members)
	names := make([]string, len(g.numbers))
	for i, n := range g.numbers {
		names[i] = "group:" + strconv.Itoa(n)
	}
	var err error
	g.made, err = job.Parts(names...)
	return g, err
}

// hashes returns those of the cuts, by part.
func (g *grouped) hashes(job processor.Job, scale int) (map[string][]hash, error) {
	all := map[string][]hash{}
	for i, n := range g.numbers {
		data, err := readHidden(job, g.made[i], at("hashes", scale))
		if err != nil {
			return nil, err
		}
		for _, part := range g.members[n] {
			if len(data) < 4 || uint64(len(data)-4) < uint64(binary.LittleEndian.Uint32(data))*uint64(len(hash{})) {
				return nil, fmt.Errorf("the hashes of group %d are cut short", n)
			}
			count := int(binary.LittleEndian.Uint32(data))
			data = data[4:]
			of := make([]hash, count)
			for k := range of {
				of[k], data = hash(data[:len(hash{})]), data[len(hash{}):]
			}
			all[part] = of
		}
	}
	return all, nil
}

// sizes returns those of the images, by part.
func (g *grouped) sizes(job processor.Job, scale int) (map[string]sizes, error) {
	all := map[string]sizes{}
	for i, n := range g.numbers {
		var list []sizes
		if err := readJSON(job, g.made[i], at("sizes", scale), &list); err != nil {
			return nil, err
		}
		if len(list) != len(g.members[n]) {
			return nil, fmt.Errorf("group %d has %d sizes of %d images", n, len(list), len(g.members[n]))
		}
		for k, part := range g.members[n] {
			all[part] = list[k]
		}
	}
	return all, nil
}

// writeHidden writes a product for other parts.
func writeHidden(job processor.Job, name string, data []byte) error {
	return job.Write(processor.Output{Name: name, Type: typeHidden, Hidden: true}, data)
}

func writeJSON(job processor.Job, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return writeHidden(job, name, data)
}

// readHidden reads a product of a part.
func readHidden(job processor.Job, made []processor.Product, name string) ([]byte, error) {
	f, err := openHidden(job, made, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, f.Size())
	_, err = f.ReadAt(data, 0)
	if err == io.EOF {
		err = nil
	}
	return data, err
}

func openHidden(job processor.Job, made []processor.Product, name string) (processor.File, error) {
	for _, p := range made {
		if p.Name == name {
			return job.OpenProduct(p)
		}
	}
	return nil, fmt.Errorf("part has not made %q", name)
}

func readJSON(job processor.Job, made []processor.Product, name string, value any) error {
	data, err := readHidden(job, made, name)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, value)
}

// readPart has a part done, and reads one of its products.
func readPart(job processor.Job, part, name string, value any) ([]processor.Product, error) {
	made, err := job.Parts(part)
	if err != nil {
		return nil, err
	}
	return made[0], readJSON(job, made[0], name, value)
}
