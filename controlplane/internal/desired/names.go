package desired

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

const (
	suffixLength = 5
	// maxMachineName is the longest name that can also stand in labels: that of the InfraEnv does.
	maxMachineName = 63
)

// Slot is a place for a control-plane Machine.
type Slot struct {
	Name, FailureDomain string
}

// FreeSlots returns the first places that no Machine has.
func FreeSlots(f *facts.Facts, count int) ([]Slot, error) {
	taken, domains := map[string]bool{}, domainsOf(f)
	for _, m := range f.Machines {
		taken[m.Name] = true
	}
	var free []Slot
	for index := 0; len(free) < count; index++ {
		name, err := machineName(f, index)
		if err != nil {
			return nil, err
		}
		if !taken[name] {
			free = append(free, Slot{name, domains.next(index)})
		}
	}
	return free, nil
}

func machineName(f *facts.Facts, index int) (string, error) {
	suffix := machineSuffix(f.ControlPlane.UID, index)
	if f.ControlPlane.Spec.MachineNaming.Template == "" {
		prefix := f.ControlPlane.Name
		if longest := maxMachineName - suffixLength - 1; len(prefix) > longest {
			prefix = strings.TrimRight(prefix[:longest], "-.")
		}
		return prefix + "-" + suffix, nil
	}
	parsed, err := template.New("name").Option("missingkey=error").Parse(f.ControlPlane.Spec.MachineNaming.Template)
	if err != nil {
		return "", fmt.Errorf("machineNaming.template is not a Go template: %w", err)
	}
	controlPlane := map[string]string{"name": f.ControlPlane.Name}
	var name bytes.Buffer
	if err := parsed.Execute(&name, map[string]any{
		"cluster":             map[string]string{"name": f.ClusterName()},
		"controlPlane":        controlPlane,
		"kubeadmControlPlane": controlPlane,
		"random":              suffix,
	}); err != nil {
		return "", fmt.Errorf("machineNaming.template cannot be used: %w", err)
	}
	if problems := validation.IsDNS1123Subdomain(name.String()); len(problems) > 0 {
		return "", fmt.Errorf("machineNaming.template gives the name %q: %s", name.String(), problems[0])
	}
	if name.Len() > maxMachineName {
		return "", fmt.Errorf("machineNaming.template gives the name %q, which is longer than %d characters", name.String(), maxMachineName)
	}
	return name.String(), nil
}

// machineSuffix is different for each place of each control plane, and always the same for one.
func machineSuffix(uid types.UID, index int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", uid, index))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:suffixLength]
}
