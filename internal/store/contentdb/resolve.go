package contentdb

import (
	"path"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// maxCandidates is how many names are compared to find a similar one: 20,000 take about 20 ms.
const maxCandidates = 20_000

// first returns the integer in the first row of a query, or 0.
func (r *Reader) first(sql string, params map[string]any) (int64, error) {
	res, err := r.query(sql, params, 1)
	if err != nil || len(res.Rows) == 0 {
		return 0, err
	}
	n, _ := res.Rows[0][0].(int64)
	return n, nil
}

// strings returns the first column of a query.
func (r *Reader) strings(sql string, params map[string]any, limit int) ([]string, error) {
	res, err := r.query(sql, params, limit)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, row := range res.Rows {
		s, _ := row[0].(string)
		all = append(all, s)
	}
	return all, nil
}

// assetNo finds an asset by id (in any case, a folder's slash may be missing), path or UUID. A path may begin with
// a source root. 0 means none.
func (r *Reader) assetNo(arg string) (int64, error) {
	tries, err := r.withoutRoots(arg)
	if err != nil {
		return 0, err
	}
	for _, try := range tries {
		no, err := r.first(`SELECT no FROM (
			SELECT 1 AS rank, no FROM asset WHERE id = :arg AND id = :arg COLLATE BINARY
			UNION ALL SELECT 2, no FROM asset WHERE id = :arg
			UNION ALL SELECT 3, no FROM asset WHERE id = :arg || '/'
			UNION ALL SELECT 4, a.no FROM source_file f JOIN asset a ON a.file = f.no WHERE f.path = :arg
			UNION ALL SELECT 5, no FROM asset WHERE folder = rtrim(:arg, '/')
			UNION ALL SELECT 6, no FROM asset WHERE uuid = lower(:arg)) ORDER BY rank LIMIT 1`, map[string]any{":arg": try})
		if err != nil || no != 0 {
			return no, err
		}
	}
	return 0, nil
}

// fileNo finds a source file, or a path where a job looked for one. 0 means none.
func (r *Reader) fileNo(arg string) (int64, error) {
	tries, err := r.withoutRoots(arg)
	if err != nil {
		return 0, err
	}
	for _, try := range tries {
		no, err := r.first("SELECT no FROM source_file WHERE path = :arg", map[string]any{":arg": try})
		if err != nil || no != 0 {
			return no, err
		}
	}
	return 0, nil
}

// withoutRoots returns what a name may mean: itself, and its rest below a source root.
func (r *Reader) withoutRoots(arg string) ([]string, error) {
	roots, err := r.strings("SELECT path FROM root ORDER BY no DESC", nil, 0)
	tries := []string{arg}
	if clean := path.Clean(arg); clean != arg && clean+"/" != arg {
		tries = append(tries, clean)
	}
	for _, root := range roots {
		if rest, ok := strings.CutPrefix(path.Clean(arg), path.Clean(root)+"/"); ok {
			tries = append(tries, rest)
		}
	}
	return tries, err
}

// resolveFile finds an output file: with the output folder and the platform (build/pc/a.ktx2), without the output
// folder, or without both, which means the file of every platform. nil means none.
func (r *Reader) resolveFile(arg string) (map[string]any, error) {
	output, err := r.strings("SELECT output FROM project", nil, 1)
	if err != nil {
		return nil, err
	}
	file := path.Clean(arg)
	for _, o := range output {
		if rest, ok := strings.CutPrefix(file, path.Clean(o)+"/"); ok {
			file = rest
			break
		}
	}
	if no, err := r.first("SELECT no FROM parcel WHERE file = :file", map[string]any{":file": file}); err != nil {
		return nil, err
	} else if no != 0 {
		return map[string]any{":file": nil, ":platform": nil, ":parcel": file}, nil
	}
	params := map[string]any{":file": file, ":platform": nil, ":asset": nil, ":sub_id": nil, ":parcel": nil}
	if platform, rest, ok := strings.Cut(file, "/"); ok {
		no, err := r.first("SELECT no FROM platform WHERE name = :name", map[string]any{":name": platform})
		if err != nil {
			return nil, err
		}
		if no != 0 {
			found, err := r.first("SELECT 1 FROM product WHERE file = :file AND platform = :no", map[string]any{":file": rest, ":no": no})
			if err != nil {
				return nil, err
			}
			if found != 0 {
				params[":file"], params[":platform"] = rest, no
				return params, nil
			}
		}
	}
	found, err := r.first("SELECT 1 FROM product WHERE file = :file", map[string]any{":file": file})
	if err != nil || found == 0 {
		return nil, err
	}
	return params, nil
}

func (r *Reader) unknownAsset(arg string) error {
	m := diag.Errorf(diag.QueryFailed, diag.Pos{}, "there is no asset %q", arg)
	near, err := r.nearest(arg, "id", "asset")
	return hinted(m, near, err, "`kiln ls` shows what there is")
}

func (r *Reader) unknownSource(arg string) error {
	m := diag.Errorf(diag.QueryFailed, diag.Pos{}, "there is no asset %q, and no job looked at a source file of that name", arg)
	near, err := r.nearest(arg, "path", "source_file")
	return hinted(m, near, err, "`kiln query asset-files ASSET` shows what an asset reads")
}

func (r *Reader) unknownFile(arg string) error {
	m := diag.Errorf(diag.QueryFailed, diag.Pos{}, "no build made the file %q", arg)
	near, err := r.nearest(arg, "file", "products")
	return hinted(m, near, err, "`kiln query asset-products ASSET` shows files")
}

func hinted(m *diag.Message, near string, err error, otherwise string) error {
	switch {
	case err != nil:
		return err
	case near != "":
		return m.WithHint("did you mean %q?", near)
	}
	return m.WithHint("%s", otherwise)
}

// nearest is the name in a column that is most similar to arg: one that ends with it (tank.png,
// sprites/tank.png), or one that differs by a typing error.
func (r *Reader) nearest(arg, column, table string) (string, error) {
	tries, err := r.withoutRoots(arg)
	if err != nil {
		return "", err
	}
	arg = tries[len(tries)-1] // below a root, if it begins with one
	params := map[string]any{":arg": arg, ":tail": "/" + strings.TrimPrefix(arg, "/")}
	ends, err := r.strings("SELECT "+column+" FROM "+table+
		" WHERE lower(substr("+column+", -length(:tail))) = lower(:tail) ORDER BY length("+column+"), 1 LIMIT 1", params, 1)
	if err != nil || len(ends) == 1 {
		return strings.Join(ends, ""), err
	}
	alike, err := r.strings("SELECT "+column+" FROM "+table+
		" WHERE abs(length("+column+") - length(:arg)) <= max(1, length(:arg) / 3) ORDER BY 1", params, maxCandidates)
	return diag.Nearest(arg, alike), err
}
