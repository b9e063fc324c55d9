package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/package-url/packageurl-go"
)

// architectures are the architectures of the images. Programs for different architectures may contain different
// modules; the bill of materials lists the modules of all.
var architectures = []string{"amd64", "arm64"}

// module is a module as the go command lists it.
type module struct {
	Path, Version, Sum string
	Replace            *module
}

// billOfMaterials returns the CycloneDX bill of materials of a manager: Go itself, and the modules that have a
// package in the manager. The bill has neither a time nor a serial number, so that equal sources give equal
// bytes.
func (r *release) billOfMaterials(ctx context.Context, p provider) ([]byte, error) {
	modules := map[string]module{}
	for _, architecture := range architectures {
		if err := r.listModules(ctx, p, architecture, modules); err != nil {
			return nil, err
		}
	}
	golang, err := r.goVersion(p)
	if err != nil {
		return nil, err
	}
	components := []cdx.Component{{Type: cdx.ComponentTypeLibrary, Name: "std", Version: golang}}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		component, err := modules[path].component()
		if err != nil {
			return nil, err
		}
		components = append(components, component)
	}
	var refs []string
	for i := range components {
		c := &components[i]
		c.PackageURL = packageURL(c.Name, c.Version)
		c.BOMRef = c.PackageURL
		refs = append(refs, c.BOMRef)
	}
	manager := &cdx.Component{
		BOMRef: p.image, Type: cdx.ComponentTypeApplication, Name: p.image, Version: r.version,
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: manager}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: manager.BOMRef, Dependencies: &refs}}
	var out bytes.Buffer
	// Common scanners do not read later versions of the format yet.
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("cannot write the bill of materials: %w", err)
	}
	return out.Bytes(), nil
}

// listModules adds the modules in the manager for an architecture.
func (r *release) listModules(ctx context.Context, p provider, architecture string, found map[string]module) error {
	env := []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + architecture}
	out, err := goCommand(ctx, r.root, env, "list", "-deps", "-json=Module", "./"+p.folder)
	if err != nil {
		return err
	}
	if err := readModules(out, found); err != nil {
		return fmt.Errorf("cannot read the modules of %s: %w", p.folder, err)
	}
	return nil
}

// readModules adds the modules of the packages that the go command has listed. A replaced module is listed as
// its replacement.
func readModules(list []byte, found map[string]module) error {
	for decoder := json.NewDecoder(bytes.NewReader(list)); ; {
		var listed struct{ Module *module }
		switch err := decoder.Decode(&listed); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		m := listed.Module
		if m != nil && m.Replace != nil {
			m = m.Replace
		}
		if m != nil && m.Version != "" { // standard library: no module; this checkout: no version
			found[m.Path] = *m
		}
	}
}

// component returns the entry of a module. The hash is the module hash of go.sum.
func (m module) component() (cdx.Component, error) {
	encoded, found := strings.CutPrefix(m.Sum, "h1:")
	sum, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !found {
		return cdx.Component{}, errors.Join(fmt.Errorf("module %s has no checksum in go.sum", m.Path), err)
	}
	return cdx.Component{
		Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, Scope: cdx.ScopeRequired,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}},
	}, nil
}

func packageURL(modulePath, version string) string {
	namespace, name := path.Split(modulePath)
	return packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(namespace, "/"), name, version, nil, "").ToString()
}

var goVersionArgument = regexp.MustCompile(`(?m)^ARG GO_VERSION=([0-9.]+)$`)

// goVersion returns the version of Go that builds the image of the manager.
func (r *release) goVersion(p provider) (string, error) {
	file := filepath.Join(r.root, "Dockerfile."+p.folder)
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot read the Dockerfile: %w", err)
	}
	version := goVersionArgument.FindSubmatch(content)
	if version == nil {
		return "", fmt.Errorf("%s sets no GO_VERSION", file)
	}
	return string(version[1]), nil
}
