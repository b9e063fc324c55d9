package hosts

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	ignition "github.com/coreos/ignition/v2/config"
	ignitiontypes "github.com/coreos/ignition/v2/config/v3_7_experimental/types"
	"github.com/vincent-petithory/dataurl"
)

// Ignition is a decoded Ignition config.
type Ignition struct {
	// Files by path.
	Files map[string]File
	// Units by name.
	Units map[string]Unit
	// Authorities are the CA certificates (PEM) of servers from which more is fetched.
	Authorities []string
}

// File is a file of an Ignition config.
type File struct {
	// Contents is the text of the file after decompression, appended parts included.
	Contents string
	// Mode is the permission; 0 if the config has none.
	Mode int
}

// Unit is a systemd unit of an Ignition config.
type Unit struct {
	// Contents is the text of the unit; empty if the config only adds drop-ins to a unit of the system.
	Contents string
	// Enabled and Masked report whether the config enables or masks the unit.
	Enabled, Masked bool
	// DropIns are its drop-in files by name.
	DropIns map[string]string
}

// DecodeIgnition decodes an Ignition config of any version from 3.0 on with Ignition's own parser. Merged and
// replacing configs, and the contents of files, must be data URLs: nothing is fetched.
func DecodeIgnition(raw []byte) (*Ignition, error) {
	decoded := &Ignition{Files: map[string]File{}, Units: map[string]Unit{}}
	if err := decoded.add(raw); err != nil {
		return nil, err
	}
	return decoded, nil
}

// add applies a config: first the configs that it refers to, then its own content, which has precedence.
func (i *Ignition) add(raw []byte) error {
	config, report, err := ignition.Parse(raw)
	if err != nil || report.IsFatal() {
		return fmt.Errorf("not a valid Ignition config: %w", errors.Join(err, errors.New(report.String())))
	}
	if config.Ignition.Config.Replace.Source != nil {
		return i.addResource(config.Ignition.Config.Replace)
	}
	for _, child := range config.Ignition.Config.Merge {
		if err := i.addResource(child); err != nil {
			return err
		}
	}
	for _, authority := range config.Ignition.Security.TLS.CertificateAuthorities {
		pem, err := contents(authority)
		if err != nil {
			return fmt.Errorf("cannot decode a certificate authority: %w", err)
		}
		i.Authorities = append(i.Authorities, string(pem))
	}
	for _, f := range config.Storage.Files {
		if err := i.addFile(f); err != nil {
			return fmt.Errorf("cannot decode file %s: %w", f.Path, err)
		}
	}
	for _, u := range config.Systemd.Units {
		i.addUnit(u)
	}
	return nil
}

func (i *Ignition) addResource(r ignitiontypes.Resource) error {
	raw, err := contents(r)
	if err != nil {
		return fmt.Errorf("cannot read a referenced Ignition config: %w", err)
	}
	return i.add(raw)
}

func (i *Ignition) addFile(f ignitiontypes.File) error {
	file := i.Files[f.Path]
	if f.Contents.Source != nil {
		text, err := contents(f.Contents)
		if err != nil {
			return err
		}
		file.Contents = string(text)
	}
	for _, r := range f.Append {
		text, err := contents(r)
		if err != nil {
			return err
		}
		file.Contents += string(text)
	}
	if f.Mode != nil {
		file.Mode = *f.Mode
	}
	i.Files[f.Path] = file
	return nil
}

func (i *Ignition) addUnit(u ignitiontypes.Unit) {
	unit := i.Units[u.Name]
	if u.Contents != nil {
		unit.Contents = *u.Contents
	}
	if u.Enabled != nil {
		unit.Enabled = *u.Enabled
	}
	if u.Mask != nil {
		unit.Masked = *u.Mask
	}
	for _, d := range u.Dropins {
		if unit.DropIns == nil {
			unit.DropIns = map[string]string{}
		}
		if d.Contents != nil {
			unit.DropIns[d.Name] = *d.Contents
		}
	}
	i.Units[u.Name] = unit
}

// contents decodes a data URL, and decompresses it if the config requires it.
func contents(r ignitiontypes.Resource) ([]byte, error) {
	if r.Source == nil {
		return nil, nil
	}
	if !strings.HasPrefix(*r.Source, "data:") {
		return nil, errors.New("only data URLs can be read")
	}
	parsed, err := dataurl.DecodeString(*r.Source)
	if err != nil {
		return nil, fmt.Errorf("not a data URL: %w", err)
	}
	if r.Compression == nil || *r.Compression == "" {
		return parsed.Data, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(parsed.Data))
	if err != nil {
		return nil, fmt.Errorf("cannot decompress: %w", err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("cannot decompress: %w", err)
	}
	return text, nil
}
