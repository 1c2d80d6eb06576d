package gltf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	codec "github.com/kiln-pipeline/kiln/internal/media/codec/gltf"
	"github.com/kiln-pipeline/kiln/processor"
)

// load reads the model and its buffers. Problems with a buffer are recorded, and the buffer is nil.
func (m *model) load() error {
	budget := m.limits.Data + int64(m.limits.JSON)
	data, err := m.read(m.job.Asset().Path, budget)
	if errors.Is(err, errTooBig) {
		return m.problem(&codec.Finding{Problem: codec.TooBig, Text: fmt.Sprintf("the file is over the limit of %d bytes", budget)})
	}
	if err != nil {
		return err
	}
	m.doc, err = codec.Read(data, m.limits)
	var bad *codec.Finding
	if errors.As(err, &bad) {
		return m.problem(bad)
	}
	budget = m.limits.Data
	m.buffers = make([][]byte, len(m.doc.Root.Array("buffers")))
	for i, b := range m.doc.Root.Array("buffers") {
		uri := b.Get("uri")
		switch {
		case uri == nil && i == 0:
			m.buffers[0] = m.doc.BIN
		case uri == nil || uri.Kind != codec.String:
			// The codec reports what is wrong with it.
		case codec.IsDataURI(uri.Text):
			m.buffers[i] = m.dataURI(uri, budget)
		default:
			if m.buffers[i], err = m.bufferFile(uri, budget); err != nil {
				return err
			}
		}
		budget -= int64(len(m.buffers[i]))
	}
	return nil
}

var errTooBig = errors.New("over the limit")

// read reads a source file of at most limit bytes.
func (m *model) read(path string, limit int64) ([]byte, error) {
	f, err := m.job.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Size() > limit {
		return nil, errTooBig
	}
	data := make([]byte, f.Size())
	_, err = io.ReadFull(f, data)
	return data, err
}

// dataURI decodes a data URI; nil if that failed, which is recorded.
func (m *model) dataURI(uri *codec.Value, limit int64) []byte {
	_, data, err := codec.DecodeDataURI(uri.Text, limit)
	if err != nil {
		m.fail(m.problem(m.doc.Find(uri, codec.DataURI, codec.Broken, "%v", err)))
		return nil
	}
	return data
}

// bufferFile reads a buffer; nil if that failed because of the model, which is recorded.
func (m *model) bufferFile(uri *codec.Value, limit int64) ([]byte, error) {
	file, ok := m.resolve(uri)
	if !ok {
		return nil, nil
	}
	data, err := m.read(file, limit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, m.missing(uri, file)
	case errors.Is(err, errTooBig):
		m.fail(m.at(uri, diag.ModelTooBig, "split the model", "the buffers have more than %d bytes together", m.limits.Data))
		return nil, nil
	}
	return data, err
}

// resolve returns the source path of a uri: a relative path, or "uuid:" and an asset's UUID. Other uris are refused,
// which is recorded.
func (m *model) resolve(uri *codec.Value) (file string, ok bool) {
	if strings.HasPrefix(uri.Text, "uuid:") {
		return m.resolveUUID(uri)
	}
	file, err := processor.ResolveURI(m.job.Asset().Path, uri.Text)
	if err != nil {
		m.fail(m.at(uri, diag.ModelURI, "name a file in the project by its path from the model, with forward slashes; write % as %25, # as %23 and ? as %3F",
			"%v", err))
		return "", false
	}
	return file, true
}

func (m *model) resolveUUID(uri *codec.Value) (file string, ok bool) {
	name, err := processor.ResolveAsset("", uri.Text)
	if err != nil {
		m.fail(m.at(uri, diag.ModelURI, "write all of the UUID; `kiln ls --json` shows it", "URI %v", err))
		return "", false
	}
	a, err := m.job.Find(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		m.fail(m.at(uri, diag.ModelFileMissing, "no asset has this UUID; `kiln ls --json` shows which there are", "asset %q does not exist", name))
	case err != nil:
		m.problems = append(m.problems, err)
	case a.Folder:
		m.fail(m.at(uri, diag.ModelURI, "name a file", "asset %q is the folder %s", name, a.Path))
	default:
		return a.Path, true
	}
	return "", false
}

// missing records that a file does not exist, and suggests another one: above all the same name in other
// letter case, which works on the artist's Windows and nowhere else.
func (m *model) missing(uri *codec.Value, file string) error {
	hint := fmt.Sprintf("put the file there, or correct the path; it is taken from the model's folder, %q", path.Dir(m.job.Asset().Path))
	same, err := m.job.Glob(anyCase(file))
	if err != nil {
		return err
	}
	var near []string
	if len(same) == 0 {
		if near, err = m.job.Glob(path.Join(processor.QuoteGlob(path.Dir(file)), "*")); err != nil {
			return err
		}
	}
	if len(same) > 0 {
		hint = fmt.Sprintf("there is %q; upper and lower case must be the same", same[0])
	} else if s := diag.DidYouMean(path.Base(file), bases(near)); s != "" {
		hint = s
	}
	m.fail(m.at(uri, diag.ModelFileMissing, hint, "file %q does not exist", file))
	return nil
}

func bases(paths []string) []string {
	all := make([]string, len(paths))
	for i, p := range paths {
		all[i] = path.Base(p)
	}
	return all
}

// anyCase is a glob for a path in upper or lower case letters.
func anyCase(file string) string {
	var b strings.Builder
	for _, r := range file {
		lower, upper := strings.ToLower(string(r)), strings.ToUpper(string(r))
		if lower != upper && len(lower) == 1 && len(upper) == 1 {
			b.WriteString("[" + lower + upper + "]")
		} else {
			b.WriteString(processor.QuoteGlob(string(r)))
		}
	}
	return b.String()
}
