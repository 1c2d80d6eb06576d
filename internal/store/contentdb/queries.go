package contentdb

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
)

// Query is a named question.
type Query struct {
	Name string   `json:"name"`
	Args []string `json:"args"` // kind of each argument: "asset", "product", "path"
	Doc  string   `json:"doc"`
	SQL  string   `json:"sql"`
}

// The parameters in a Query's SQL for each kind.
const (
	argAsset   = "asset"   // :asset
	argProduct = "product" // :asset and :sub_id, or :file and :platform (NULL: any)
	argPath    = "path"    // :file and :platform, :parcel
)

// Queries returns the named questions.
func Queries() []Query { return slices.Clone(questions) }

// Run answers a named question. It reads at most limit rows; 0 means all of them. Errors for users
// are messages K0216 (no such question, wrong arguments, unknown name) and K0219.
func (r *Reader) Run(ctx context.Context, name string, args []string, limit int) (*Result, error) {
	if name == "unused" && len(args) == 0 {
		if loaded := r.loaded(); len(loaded) > 0 {
			return r.runUnused(ctx, loaded, limit)
		}
	}
	return r.run(ctx, name, args, limit)
}

func (r *Reader) run(ctx context.Context, name string, args []string, limit int) (*Result, error) {
	q, err := find(name, args)
	if err != nil {
		return nil, err
	}
	var res *Result
	err = r.snapshot(ctx, func() error {
		params := map[string]any{}
		if len(q.Args) == 1 {
			if params, err = r.resolve(q.Args[0], args[0]); err != nil {
				return err
			}
		}
		res, err = r.query(q.SQL, params, limit)
		return err
	})
	return res, err
}

// find returns the question with this name, if the arguments fit it.
func find(name string, args []string) (Query, error) {
	var names []string
	for _, q := range Queries() {
		if q.Name != name {
			names = append(names, q.Name)
			continue
		}
		if len(args) != len(q.Args) {
			usage := strings.ToUpper(strings.Join(append([]string{""}, q.Args...), " "))
			takes := map[int]string{0: "no argument", 1: "one argument"}[len(q.Args)]
			return q, diag.Errorf(diag.QueryFailed, diag.Pos{}, "query %s takes %s and got %d", name, takes, len(args)).
				WithHint("kiln query %s%s", name, usage)
		}
		return q, nil
	}
	m := diag.Errorf(diag.QueryFailed, diag.Pos{}, "there is no query %q", name)
	if hint := diag.DidYouMean(name, names); hint != "" {
		return Query{}, m.WithHint("%s", hint)
	}
	return Query{}, m.WithHint("`kiln query --list` names them")
}

// resolve turns an argument into the parameters of a question.
func (r *Reader) resolve(kind, arg string) (map[string]any, error) {
	switch kind {
	case argAsset:
		no, err := r.assetNo(arg)
		if err == nil && no == 0 {
			err = r.unknownAsset(arg)
		}
		return map[string]any{":asset": no}, err
	case argProduct:
		return r.resolveProduct(arg)
	default:
		params, err := r.resolveFile(arg)
		if err != nil || params != nil {
			return params, err
		}
		return nil, r.unknownFile(arg)
	}
}

// resolveProduct takes uuid:subid or an output file.
func (r *Reader) resolveProduct(arg string) (map[string]any, error) {
	if uuid, sub, ok := strings.Cut(arg, ":"); ok && len(uuid) == 36 {
		var subID uint32
		if n, err := fmt.Sscan(sub, &subID); n == 1 && err == nil {
			no, err := r.first("SELECT x.asset FROM asset a JOIN product x ON x.asset = a.no WHERE a.uuid = :arg AND x.sub_id = :sub",
				map[string]any{":arg": strings.ToLower(uuid), ":sub": int64(subID)})
			if err == nil && no == 0 {
				err = diag.Errorf(diag.QueryFailed, diag.Pos{}, "no product has the id %s", arg).
					WithHint("`kiln query asset-products ASSET` shows ids")
			}
			return map[string]any{":asset": no, ":sub_id": int64(subID), ":file": nil, ":platform": nil}, err
		}
	}
	params, err := r.resolveFile(arg)
	if err != nil {
		return nil, err
	}
	if params == nil || params[":parcel"] != nil {
		return nil, r.unknownFile(arg)
	}
	return params, nil
}
