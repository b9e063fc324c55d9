// Package argocd returns the health that Argo CD computes for an object. It runs the health checks in config/argocd
// like Argo CD.
package argocd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What Argo CD calls the health of an object.
const (
	Healthy     = "Healthy"
	Progressing = "Progressing"
	Degraded    = "Degraded"
	Suspended   = "Suspended"
)

// Script is the name of a health check below the folders of its group and kind.
const Script = "health.lua"

// limit is how long a check may run. Argo CD gives it a second, of a machine that has nothing else to do.
const limit = 30 * time.Second

// Health is the result of a check.
type Health struct {
	// Status is Healthy, Progressing, Degraded or Suspended.
	Status string
	// Message is the blocker or the error.
	Message string
}

// Checks are health checks by the kinds that they are for.
type Checks map[schema.GroupKind]string

// Load reads the checks below a folder: <group>/<kind>/health.lua.
func Load(dir string) (Checks, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", Script))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, fmt.Errorf("no health checks below %s: %w", dir, fs.ErrNotExist))
	}
	checks := Checks{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read a health check: %w", err)
		}
		kind := filepath.Dir(file)
		checks[schema.GroupKind{Group: filepath.Base(filepath.Dir(kind)), Kind: filepath.Base(kind)}] = string(content)
	}
	return checks, nil
}

// Of runs the check for the object's kind.
func (c Checks) Of(ctx context.Context, object *unstructured.Unstructured) (Health, error) {
	script, known := c[object.GroupVersionKind().GroupKind()]
	if !known {
		return Health{}, fmt.Errorf("there is no health check for %s", object.GroupVersionKind().GroupKind())
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	state.SetContext(ctx)
	if err := openLibraries(state); err != nil {
		return Health{}, err
	}
	state.SetGlobal("obj", value(state, object.Object))
	if err := state.DoString(script); err != nil {
		return Health{}, fmt.Errorf("the health check for %s fails: %w", object.GetKind(), err)
	}
	return read(object.GetKind(), state.Get(-1))
}

// openLibraries opens those that Argo CD gives to checks of its users. Functions for strings are not among them, and of
// its reduced os nothing is needed.
func openLibraries(state *lua.LState) error {
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return fmt.Errorf("cannot open the library %q of Lua: %w", name, err)
		}
	}
	return nil
}

func read(kind string, returned lua.LValue) (Health, error) {
	table, is := returned.(*lua.LTable)
	if !is {
		return Health{}, fmt.Errorf("the health check for %s returns a %s", kind, returned.Type())
	}
	health := Health{Status: lua.LVAsString(table.RawGetString("status")), Message: lua.LVAsString(table.RawGetString("message"))}
	if !slices.Contains([]string{Healthy, Progressing, Degraded, Suspended}, health.Status) || health.Message == "" {
		return Health{}, fmt.Errorf("the health check for %s returns status %q with message %q", kind, health.Status, health.Message)
	}
	return health, nil
}

// value makes of a part of an object what Lua has for it.
func value(state *lua.LState, part any) lua.LValue {
	switch part := part.(type) {
	case bool:
		return lua.LBool(part)
	case string:
		return lua.LString(part)
	case int64:
		return lua.LNumber(part)
	case float64:
		return lua.LNumber(part)
	case []any:
		list := state.CreateTable(len(part), 0)
		for _, item := range part {
			list.Append(value(state, item))
		}
		return list
	case map[string]any:
		table := state.CreateTable(0, len(part))
		for key, item := range part {
			table.RawSetString(key, value(state, item))
		}
		return table
	}
	return lua.LNil
}
