package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/internal/extend/seal"
	"github.com/kiln-pipeline/kiln/processor"
)

// maxDepfile is the largest depfile that is read, in bytes: some 100,000 paths.
const maxDepfile = 16 << 20

// parseDepfile returns the prerequisites in a depfile, each once, in order. The grammar is the part of
// make's that compilers write:
//
//	depfile = { [ rule ] newline }
//	rule    = word { space word } ":" { space word }
//
// A colon ends the targets if a space, the end of the line or nothing follows: `C:\a` has none. In a
// word, `\ ` is a space, `\#` a `#`, `\:` a `:`, `$$` a `$`; 2n backslashes before a space or `#` are n
// backslashes and the word's end, 2n+1 are n of them and the character itself; any other backslash is a
// backslash, as Windows paths need it. A backslash at the end of a line joins the next one to it. A line
// that starts with `#` is a comment.
func parseDepfile(data []byte) ([]string, error) {
	if bytes.IndexByte(data, 0) >= 0 {
		return nil, errors.New("it holds a zero byte")
	}
	s := strings.NewReplacer("\r\n", "\n").Replace(string(data))
	var (
		found []string
		seen  = map[string]bool{}
		line  = 1
	)
	for s != "" {
		words, colon, rest, lines := depfileRule(s)
		if colon < 0 && len(words) > 0 {
			return nil, fmt.Errorf("line %d has no `target: prerequisite`", line)
		}
		for _, w := range words[max(colon, 0):] {
			if w != "|" && !seen[w] { // a single bar precedes order-only prerequisites
				seen[w] = true
				found = append(found, w)
			}
		}
		s, line = rest, line+lines
	}
	return found, nil
}

// depfileRule parses one rule: its words, how many of them are targets (-1 if there is no colon),
// what follows it, and its number of lines.
func depfileRule(s string) (words []string, colon int, rest string, lines int) {
	colon = -1
	if strings.HasPrefix(s, "#") {
		_, rest, _ := strings.Cut(s, "\n")
		return nil, colon, rest, 1
	}
	for {
		var newlines int
		s, newlines = skipSpace(s)
		lines += newlines
		if s == "" {
			return words, colon, "", lines
		}
		if s[0] == '\n' {
			return words, colon, s[1:], lines + 1
		}
		word, ends, after := depfileWord(s, colon < 0)
		if word != "" {
			words = append(words, word)
		}
		if ends {
			colon = len(words)
		}
		s = after
	}
}

// skipSpace skips blanks and joined lines.
func skipSpace(s string) (rest string, lines int) {
	for {
		switch {
		case strings.HasPrefix(s, " "), strings.HasPrefix(s, "\t"):
			s = s[1:]
		case strings.HasPrefix(s, "\\\n"):
			s, lines = s[2:], lines+1
		default:
			return s, lines
		}
	}
}

// depfileWord reads a word; ends is true if it is the last target and its colon was read.
func depfileWord(s string, target bool) (word string, ends bool, rest string) {
	var b strings.Builder
	for s != "" {
		switch c := s[0]; {
		case c == ' ' || c == '\t' || c == '\n' || strings.HasPrefix(s, "\\\n"):
			return b.String(), false, s
		case c == ':' && target && endsTargets(s[1:]):
			return b.String(), true, s[1:]
		case strings.HasPrefix(s, "$$"):
			b.WriteByte('$')
			s = s[2:]
		case c == '\\':
			s = backslashes(&b, s)
		default:
			b.WriteByte(c)
			s = s[1:]
		}
	}
	return b.String(), false, ""
}

func endsTargets(after string) bool {
	return after == "" || strings.IndexByte(" \t\n", after[0]) >= 0 || strings.HasPrefix(after, "\\\n")
}

// backslashes reads a run of backslashes and what they escape.
func backslashes(b *strings.Builder, s string) (rest string) {
	rest = strings.TrimLeft(s, `\`)
	n := len(s) - len(rest)
	switch {
	case rest != "" && (rest[0] == ' ' || rest[0] == '#'):
		b.WriteString(s[:n/2])
		if n%2 == 1 {
			b.WriteByte(rest[0])
			rest = rest[1:]
		}
	case rest != "" && rest[0] == ':' && !endsTargets(rest[1:]):
		b.WriteString(s[:n-1])
		b.WriteByte(':')
		rest = rest[1:]
	case strings.HasPrefix(rest, "\n"): // the last one joins the lines
		b.WriteString(s[:n-1])
		rest = s[n-1:]
	default:
		b.WriteString(s[:n])
	}
	return rest
}

// takeDepfile reads the depfile, if one is expected. With declared inputs it fails if the program read source files
// that are not among them; otherwise, unless the program was traced, the listed files are recorded.
func (p *proc) takeDepfile(r *reads, tools map[string]string) error {
	if !uses(p.args, "dep") || p.config.Reads == Traced {
		return nil
	}
	read, err := p.readDepfile(r.v)
	switch {
	case err != nil && p.config.Reads == Depfile:
		return moment(errors.Join(err, r.see(nil))) // it is not known what it read: another try may succeed
	case err != nil:
		return err
	case p.config.Reads == Depfile:
		return p.recordDepfile(r, read)
	}
	for _, file := range read {
		if !filepath.IsAbs(file) {
			file = filepath.Join(r.v.path(viewFolder), file)
		}
		a := lookAt(filepath.Clean(file), seal.Read)
		if err := r.refuse(&a); err != nil {
			return err
		}
	}
	if err := r.checkDepfile(p, read, tools); err != nil {
		return err
	}
	return r.system(read)
}

// recordFailed records what a failed program says that it read: its asset, and the files in the depfile, if there is
// one. That may not be all, so the failure is not cached: a fixed include would not be noticed.
func (p *proc) recordFailed(r *reads) error {
	if p.config.Reads != Depfile {
		return nil
	}
	read, err := p.readDepfile(r.v)
	if err != nil {
		return r.see(nil)
	}
	return p.recordDepfile(r, read)
}

// recordDepfile records the files that the program lists.
func (p *proc) recordDepfile(r *reads, read []string) error {
	var all []seal.Access
	for _, file := range read {
		if !filepath.IsAbs(file) {
			file = r.v.path(viewFolder) + "/" + filepath.ToSlash(file)
		}
		if strings.Contains(file, "..") { // this leads out of the target of a link
			dir, name := filepath.Split(file)
			file = filepath.Join(r.folder(dir), name)
		}
		a := lookAt(filepath.Clean(file), seal.Read)
		if a.State.Moved >= r.v.began && !r.own(a.Real) && r.refuse(&a) == nil {
			return changedMeanwhile(a.Path)
		}
		all = append(all, a)
	}
	return r.see(all)
}

// system records the files outside of the source roots that a program with declared inputs lists: headers of the system, fonts.
func (r *reads) system(read []string) error {
	for _, file := range read {
		if !filepath.IsAbs(file) {
			continue
		}
		a := lookAt(filepath.Clean(file), seal.Read)
		if r.own(a.Real) {
			continue
		}
		if err := r.external(a.Path, &a); err != nil {
			return err
		}
	}
	return nil
}

// readDepfile returns the paths in the depfile.
func (p *proc) readDepfile(v *view) ([]string, error) {
	hint := fmt.Sprintf("check the options of %s that write {dep}", p.config.Command[0])
	if p.config.Reads == Declared {
		hint += ", or remove them; `inputs` is what counts"
	}
	bad := func(err error, format string, args ...any) ([]string, error) {
		return nil, &processor.Problem{
			Code: string(diag.CommandDepfile), Text: fmt.Sprintf(format, args...), Err: err,
			Hint: hint,
		}
	}
	f, err := v.open(depfile)
	if errors.Is(err, fs.ErrNotExist) {
		return bad(err, "%s succeeded, but did not write {dep}", path.Base(p.config.Command[0]))
	}
	if err != nil {
		return bad(err, "what %s wrote is not a depfile: %v", path.Base(p.config.Command[0]), err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxDepfile+1))
	if err != nil {
		return nil, moment(err)
	}
	if len(data) > maxDepfile {
		return bad(nil, "the depfile is larger than %d bytes", maxDepfile)
	}
	read, err := parseDepfile(data)
	if err != nil {
		return bad(err, "what %s wrote is not a depfile: %v", path.Base(p.config.Command[0]), err)
	}
	return read, nil
}

// checkDepfile fails if the program read source files that are not in its view.
func (r *reads) checkDepfile(p *proc, read []string, tools map[string]string) error {
	known := map[string]bool{}
	for _, t := range tools {
		known[t] = true
	}
	var all []error
	for _, file := range read {
		if source, ok := r.undeclared(file); ok && !known[filepath.Clean(file)] {
			all = append(all, &processor.Problem{
				Code: string(diag.CommandUndeclared),
				Text: fmt.Sprintf("%s read %s where it lies and not in its input view, so that a change of it would go unseen", path.Base(p.config.Command[0]), source),
				Hint: fmt.Sprintf("add %q to `inputs` of the processor %q, and name it by a relative path", source, p.config.Name),
			})
		}
	}
	return errors.Join(all...)
}

// undeclared reports whether a path of a depfile is a source file outside of the view. Files inside
// are recorded or were made by the program itself; files that are neither there nor below a root
// belong to the system, like the program's own libraries.
func (r *reads) undeclared(file string) (source string, ok bool) {
	if !filepath.IsAbs(file) {
		file = filepath.Join(r.v.path(viewFolder), filepath.FromSlash(file))
	}
	if _, ok := below(r.v.scratch, file); ok {
		return "", false
	}
	for _, root := range r.roots {
		if source, ok := below(root, file); ok {
			return source, true
		}
	}
	return "", false
}
