package job

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// An elementType is what ranks must agree on about the elements of a call: not the
// name of their type, which another program may give another, but its layout.
type elementType struct {
	size int
	name string
	kind uint64
}

var elementTypes sync.Map

// elementIn is elementOf by one who is seldom asked for another than the last.
func elementIn[T any](r *round) (*elementType, error) {
	t := reflect.TypeFor[T]()
	if t == r.lastType {
		return r.lastElement, nil
	}
	e, err := elementOf[T]()
	if err == nil {
		r.lastType, r.lastElement = t, e
	}
	return e, err
}

// elementOf describes T, or says why T cannot cross between ranks.
func elementOf[T any]() (*elementType, error) {
	t := reflect.TypeFor[T]()
	if e, ok := elementTypes.Load(t); ok {
		return e.(*elementType), nil
	}
	if path := pointerIn(t); path != "" {
		return nil, fmt.Errorf("%w: element type %v has a pointer (%s); allowed are numbers, booleans, and arrays and structs of them", ErrArgument, t, path)
	}
	name := layoutOf(t)
	e := &elementType{size: int(t.Size()), name: name, kind: mark(name)}
	elementTypes.Store(t, e)
	return e, nil
}

// pointerIn names the part of t that holds a pointer, empty if none does.
func pointerIn(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Array:
		if t.Len() == 0 {
			return ""
		}
		return pointerIn(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if part := pointerIn(t.Field(i).Type); part != "" {
				return t.Field(i).Name + " " + part
			}
		}
		return ""
	case reflect.Pointer, reflect.UnsafePointer, reflect.Map, reflect.Chan, reflect.Func, reflect.Interface, reflect.Slice, reflect.String:
		return t.String()
	}
	return ""
}

// layoutOf spells out of which basic types t is made.
func layoutOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), layoutOf(t.Elem()))
	case reflect.Struct:
		fields := make([]string, t.NumField())
		for i := range fields {
			fields[i] = layoutOf(t.Field(i).Type)
		}
		return "struct{" + strings.Join(fields, ";") + "}"
	}
	return t.Kind().String()
}
