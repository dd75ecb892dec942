package main

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
)

// flows are the values that a package assigns to its variables, fields and parameters.
type flows struct {
	info *types.Info
	into map[*types.Var][]ast.Expr
	// leaveOut reports whether to ignore a value.
	leaveOut func(token.Pos) bool
}

func newFlows(leaveOut func(token.Pos) bool) *flows {
	return &flows{
		info: &types.Info{
			Types: make(map[ast.Expr]types.TypeAndValue), Defs: make(map[*ast.Ident]types.Object),
			Uses: make(map[*ast.Ident]types.Object), Selections: make(map[*ast.SelectorExpr]*types.Selection),
		},
		into:     make(map[*types.Var][]ast.Expr),
		leaveOut: leaveOut,
	}
}

// identifier returns the last name of an expression: that of a variable, a function, a field or a method.
func identifier(e ast.Expr) *ast.Ident {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return e.Sel
	case *ast.IndexExpr:
		return identifier(e.X)
	}
	return nil
}

// variable returns the variable that an expression names, or nil.
func (f *flows) variable(e ast.Expr) *types.Var {
	name := identifier(e)
	if name == nil {
		return nil
	}
	v, ok := f.info.ObjectOf(name).(*types.Var)
	if !ok {
		return nil
	}
	return v.Origin()
}

func (f *flows) add(v *types.Var, value ast.Expr) {
	if v != nil && !f.leaveOut(value.Pos()) {
		f.into[v.Origin()] = append(f.into[v.Origin()], value)
	}
}

// collect adds the assignments of a file.
func (f *flows) collect(file *ast.File) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.AssignStmt:
			for i := range n.Lhs {
				if len(n.Lhs) == len(n.Rhs) {
					f.add(f.variable(n.Lhs[i]), n.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			for i := range n.Names {
				if len(n.Names) == len(n.Values) {
					f.add(f.variable(n.Names[i]), n.Values[i])
				}
			}
		case *ast.RangeStmt:
			if literal, ok := n.X.(*ast.CompositeLit); ok && n.Value != nil {
				for _, element := range literal.Elts {
					if pair, ok := element.(*ast.KeyValueExpr); ok {
						element = pair.Value
					}
					f.add(f.variable(n.Value), element)
				}
			}
		case *ast.CompositeLit:
			f.literal(n)
		case *ast.CallExpr:
			f.call(n)
		}
		return true
	})
}

// literal adds the assignments of a literal to fields.
func (f *flows) literal(literal *ast.CompositeLit) {
	of := f.info.TypeOf(literal)
	if of == nil {
		return
	}
	if pointer, ok := of.Underlying().(*types.Pointer); ok {
		of = pointer.Elem()
	}
	structure, ok := of.Underlying().(*types.Struct)
	for i, element := range literal.Elts {
		pair, keyed := element.(*ast.KeyValueExpr)
		switch {
		case !ok:
		case keyed:
			f.add(f.variable(pair.Key), pair.Value)
		case i < structure.NumFields():
			f.add(structure.Field(i), element)
		}
	}
}

// call adds the assignments of a call to parameters.
func (f *flows) call(call *ast.CallExpr) {
	of := f.info.TypeOf(call.Fun)
	if of == nil {
		return
	}
	signature, ok := of.Underlying().(*types.Signature)
	if !ok {
		return
	}
	for i, argument := range call.Args {
		if i < signature.Params().Len() && !(signature.Variadic() && i == signature.Params().Len()-1) {
			f.add(signature.Params().At(i), argument)
		}
	}
}

// least returns the least constant that an expression can have, if it can have one.
func (f *flows) least(e ast.Expr) (int64, bool) {
	value := f.value(e, make(map[*types.Var]bool))
	if value == nil {
		return 0, false
	}
	return constant.Int64Val(constant.ToInt(value))
}

// value returns the least constant, or nil. It does not follow variables in seen, so that assignments to a variable
// from itself end.
func (f *flows) value(e ast.Expr, seen map[*types.Var]bool) (least constant.Value) {
	known := f.info.Types[e]
	if known.Value != nil {
		if value := constant.ToInt(known.Value); value.Kind() == constant.Int {
			return value
		}
		return nil
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident, *ast.SelectorExpr:
		v := f.variable(e)
		if v == nil || seen[v] {
			return nil
		}
		seen[v] = true
		for _, from := range f.into[v] {
			if value := f.value(from, seen); value != nil && (least == nil || constant.Compare(value, token.LSS, least)) {
				least = value
			}
		}
		delete(seen, v)
		return least
	case *ast.CallExpr:
		if len(e.Args) == 1 && f.info.Types[e.Fun].IsType() {
			return f.value(e.Args[0], seen)
		}
	case *ast.BinaryExpr:
		x, y := f.value(e.X, seen), f.value(e.Y, seen)
		switch {
		case x == nil || y == nil:
		case e.Op == token.ADD, e.Op == token.SUB, e.Op == token.MUL:
			return constant.BinaryOp(x, e.Op, y)
		case e.Op == token.QUO && constant.Sign(y) != 0:
			return constant.BinaryOp(x, token.QUO_ASSIGN, y) // of integers
		}
	}
	return nil
}

// canBe reports whether an expression is a call of a kind, or can have the value of one.
func (f *flows) canBe(e ast.Expr, kind func(*ast.CallExpr) bool) bool {
	seen := make(map[*types.Var]bool)
	var from func(ast.Expr) bool
	from = func(e ast.Expr) bool {
		if call, ok := ast.Unparen(e).(*ast.CallExpr); ok {
			return kind(call)
		}
		v := f.variable(e)
		if v == nil || seen[v] {
			return false
		}
		seen[v] = true
		for _, value := range f.into[v] {
			if from(value) {
				return true
			}
		}
		return false
	}
	return from(e)
}

// addition is the method that makes a deadline from a time.
const addition = "(time.Time).Add"

// called returns the full name of the function of a call, or "".
func (f *flows) called(call *ast.CallExpr) string {
	if name := identifier(call.Fun); name != nil {
		if function, ok := f.info.Uses[name].(*types.Func); ok {
			return function.FullName()
		}
	}
	return ""
}

// now reports whether a call returns the present time.
func (f *flows) now(call *ast.CallExpr) bool { return f.called(call) == "time.Now" }

// elapsed reports whether a call returns the time until now, or until a time that was now.
func (f *flows) elapsed(call *ast.CallExpr) bool {
	switch f.called(call) {
	case "time.Since":
		return true
	case "(time.Time).Sub":
		selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		return ok && len(call.Args) == 1 && (f.canBe(selector.X, f.now) || f.canBe(call.Args[0], f.now))
	}
	return false
}
