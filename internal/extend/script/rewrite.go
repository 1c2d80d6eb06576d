package script

import "go.starlark.net/syntax"

// hidden is the prefix of functions that only rewrite calls: no script can write it.
const hidden = "·"

// rewrite replaces operations that could need any amount of memory in one step of the interpreter, which only counts
// steps, by calls of the guard: operators that join and repeat, slices, methods that build, lists spread into
// arguments, and tuples, whose hash is computed by recursion. Operators with a small number on one side are not changed
// if they cannot grow.
func rewrite(file *syntax.File) { statements(file.Stmts) }

func statements(list []syntax.Stmt) {
	for i, s := range list {
		list[i] = statement(s)
	}
}

func statement(s syntax.Stmt) syntax.Stmt {
	switch s := s.(type) {
	case *syntax.AssignStmt:
		return assignment(s)
	case *syntax.DefStmt:
		parameters(s.Params)
		statements(s.Body)
		if v := variadic(s.Params); v != nil {
			pos := s.Body[0]
			start, _ := pos.Span()
			check := &syntax.ExprStmt{X: call("tuple", start, &syntax.Ident{NamePos: start, Name: v.Name})}
			s.Body = append([]syntax.Stmt{check}, s.Body...)
		}
	case *syntax.ExprStmt:
		if lit, ok := s.X.(*syntax.Literal); !ok || lit.Token != syntax.STRING { // a docstring is not changed
			s.X = expression(s.X)
		}
	case *syntax.IfStmt:
		s.Cond = expression(s.Cond)
		statements(s.True)
		statements(s.False)
	case *syntax.ForStmt:
		target(s.Vars)
		s.X = expression(s.X)
		statements(s.Body)
	case *syntax.WhileStmt:
		s.Cond = expression(s.Cond)
		statements(s.Body)
	case *syntax.ReturnStmt:
		if s.Result != nil {
			s.Result = expression(s.Result)
		}
	}
	return s
}

// assignment guards x op= y: for a variable as x = f(x, y), for an element as f(list, index, y), so that list and index
// are evaluated once.
func assignment(s *syntax.AssignStmt) syntax.Stmt {
	op, grows := growing[s.Op]
	if !grows || small(op, s.RHS) {
		target(s.LHS)
		s.RHS = expression(s.RHS)
		return s
	}
	switch lhs := s.LHS.(type) {
	case *syntax.Ident:
		rhs := expression(s.RHS)
		s.RHS = call("i"+op.name, s.OpPos, &syntax.Ident{NamePos: lhs.NamePos, Name: lhs.Name}, rhs)
		s.Op = syntax.EQ
	case *syntax.IndexExpr:
		return &syntax.ExprStmt{X: call("e"+op.name, s.OpPos, expression(lhs.X), expression(lhs.Y), expression(s.RHS))}
	default:
		target(lhs)
		s.RHS = expression(s.RHS)
	}
	return s
}

// operator is one that the guard runs.
type operator struct {
	name string
	tok  syntax.Token
}

// growing are the operators whose result can be larger than a step allows.
var growing = map[syntax.Token]operator{
	syntax.PLUS: {"add", syntax.PLUS}, syntax.PLUS_EQ: {"add", syntax.PLUS},
	syntax.STAR: {"mul", syntax.STAR}, syntax.STAR_EQ: {"mul", syntax.STAR},
	syntax.PERCENT: {"mod", syntax.PERCENT}, syntax.PERCENT_EQ: {"mod", syntax.PERCENT},
	syntax.PIPE: {"or", syntax.PIPE}, syntax.PIPE_EQ: {"or", syntax.PIPE},
	syntax.LTLT: {"shl", syntax.LTLT}, syntax.LTLT_EQ: {"shl", syntax.LTLT},
}

// small reports whether an operand prevents the operator from growing: a number plus anything is a number, and so is
// the product with a fraction.
func small(op operator, x syntax.Expr) bool {
	lit, ok := x.(*syntax.Literal)
	if !ok {
		return false
	}
	switch op.tok {
	case syntax.PLUS:
		return lit.Token == syntax.INT || lit.Token == syntax.FLOAT
	case syntax.STAR:
		return lit.Token == syntax.FLOAT
	}
	return false
}

// target rewrites inside the left side of an assignment.
func target(x syntax.Expr) {
	switch x := x.(type) {
	case *syntax.ParenExpr:
		target(x.X)
	case *syntax.TupleExpr:
		for _, e := range x.List {
			target(e)
		}
	case *syntax.ListExpr:
		for _, e := range x.List {
			target(e)
		}
	case *syntax.IndexExpr:
		x.X, x.Y = expression(x.X), expression(x.Y)
	case *syntax.DotExpr:
		x.X = expression(x.X)
	}
}

func parameters(params []syntax.Expr) {
	for _, p := range params {
		if b, ok := p.(*syntax.BinaryExpr); ok {
			b.Y = expression(b.Y)
		}
	}
}

// variadic is the name of *args, or nil.
func variadic(params []syntax.Expr) *syntax.Ident {
	for _, p := range params {
		if u, ok := p.(*syntax.UnaryExpr); ok && u.Op == syntax.STAR && u.X != nil {
			return u.X.(*syntax.Ident)
		}
	}
	return nil
}

func expressions(list []syntax.Expr) {
	for i, x := range list {
		list[i] = expression(x)
	}
}

func expression(x syntax.Expr) syntax.Expr {
	switch x := x.(type) {
	case *syntax.BinaryExpr:
		x.X, x.Y = expression(x.X), expression(x.Y)
		if op, ok := growing[x.Op]; ok && !small(op, x.X) && !small(op, x.Y) {
			return call(op.name, x.OpPos, x.X, x.Y)
		}
	case *syntax.CallExpr:
		x.Fn = expression(x.Fn)
		arguments(x.Args)
	case *syntax.Comprehension:
		return comprehension(x)
	case *syntax.CondExpr:
		x.Cond, x.True, x.False = expression(x.Cond), expression(x.True), expression(x.False)
	case *syntax.DictExpr:
		for _, e := range x.List {
			entry(e.(*syntax.DictEntry))
		}
	case *syntax.DotExpr:
		x.X = expression(x.X)
		if building[x.Name.Name] {
			return call("attr", x.Dot, x.X, &syntax.Literal{Token: syntax.STRING, TokenPos: x.NamePos, Raw: `""`, Value: x.Name.Name})
		}
	case *syntax.IndexExpr:
		x.X, x.Y = expression(x.X), expression(x.Y)
	case *syntax.LambdaExpr:
		parameters(x.Params)
		x.Body = expression(x.Body)
		if v := variadic(x.Params); v != nil {
			x.Body = call("second", x.Lambda, call("tuple", x.Lambda, &syntax.Ident{NamePos: x.Lambda, Name: v.Name}), x.Body)
		}
	case *syntax.ListExpr:
		expressions(x.List)
	case *syntax.ParenExpr:
		x.X = expression(x.X)
	case *syntax.SliceExpr:
		x.X = call("slice", x.Lbrack, expression(x.X))
		for _, bound := range []*syntax.Expr{&x.Lo, &x.Hi, &x.Step} {
			if *bound != nil {
				*bound = expression(*bound)
			}
		}
	case *syntax.TupleExpr:
		return tuple(x)
	case *syntax.UnaryExpr:
		if x.X != nil {
			x.X = expression(x.X)
		}
	}
	return x
}

// tuple guards a tuple unless it consists of literal numbers and strings.
func tuple(x *syntax.TupleExpr) syntax.Expr {
	plain := true
	for _, e := range x.List {
		if _, ok := e.(*syntax.Literal); !ok {
			plain = false
		}
	}
	expressions(x.List)
	if plain {
		return x
	}
	start, _ := x.Span()
	return call("tuple", start, x)
}

func entry(e *syntax.DictEntry) { e.Key, e.Value = expression(e.Key), expression(e.Value) }

func arguments(args []syntax.Expr) {
	for i, a := range args {
		switch a := a.(type) {
		case *syntax.BinaryExpr:
			if a.Op == syntax.EQ { // name = value
				a.Y = expression(a.Y)
				continue
			}
		case *syntax.UnaryExpr:
			if a.Op == syntax.STAR || a.Op == syntax.STARSTAR {
				a.X = call("spread", a.OpPos, expression(a.X))
				continue
			}
		}
		args[i] = expression(a)
	}
}

func comprehension(x *syntax.Comprehension) syntax.Expr {
	for _, c := range x.Clauses {
		switch c := c.(type) {
		case *syntax.ForClause:
			target(c.Vars)
			c.X = expression(c.X)
		case *syntax.IfClause:
			c.Cond = expression(c.Cond)
		}
	}
	if e, ok := x.Body.(*syntax.DictEntry); ok {
		entry(e)
	} else {
		x.Body = expression(x.Body)
	}
	return x
}

// call is a call of one of the guard's functions, with the place of what it replaces.
func call(name string, pos syntax.Position, args ...syntax.Expr) syntax.Expr {
	return &syntax.CallExpr{Fn: &syntax.Ident{NamePos: pos, Name: hidden + name}, Lparen: pos, Args: args, Rparen: pos}
}
