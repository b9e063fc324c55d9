package desired

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

const (
	suffixLength = 5
	// maxMachineName is the longest name that is also a valid label value, as the name of the InfraEnv must
	// be.
	maxMachineName = 63
)

// Slot is a place for a control-plane Machine.
type Slot struct {
	Name, FailureDomain string
	// Arbiter is true for the slot of an arbiter.
	Arbiter bool
}

// arbiterSlot is the slot of the arbiter. No other Machine has the name of this slot, so that there are never
// two arbiters.
const arbiterSlot = "arbiter"

// FreeSlots returns the first slots without a Machine, that of an arbiter first. A replacement keeps the
// role: as long as an arbiter exists, even one that is being deleted, the others are masters.
func FreeSlots(f *facts.Facts, count int) ([]Slot, error) {
	taken, domains := map[string]bool{}, domainsOf(f)
	masters, arbiters := count, int(f.Arbiters())
	for _, m := range f.Machines {
		taken[m.Name] = true
		if IsArbiter(f, m) || LostArbiterRole(f, m) {
			arbiters = 0
		}
	}
	arbiter, err := machineName(f, arbiterSlot)
	if err != nil {
		return nil, err
	}
	if taken[arbiter] { // by a Machine whose config has another role: a name is used once
		arbiters = 0
	}
	masters -= arbiters
	var free []Slot
	for index := 0; len(free) < masters; index++ {
		name, err := machineName(f, strconv.Itoa(index))
		if err != nil {
			return nil, err
		}
		if !taken[name] {
			free = append(free, Slot{Name: name, FailureDomain: domains.next(index)})
		}
	}
	if arbiters == 0 {
		return free, nil
	}
	return slices.Insert(free, 0, Slot{Name: arbiter, FailureDomain: domains.next(int(f.Replicas()) - 1), Arbiter: true}), nil
}

// IsArbiter reports whether a Machine of the control plane is an arbiter. Its OpenshiftAssistedConfig
// decides, as for the bootstrap provider. If the config is deleted, or not cached yet, the name of the
// Machine identifies the slot. A Machine of a control plane with another UID, before a move, has only the
// label.
func IsArbiter(f *facts.Facts, m *clusterv1.Machine) bool {
	if config := f.Configs[m.Name]; config != nil {
		return config.Spec.Role == bootstrapv1.HostRoleArbiter
	}
	if place := slotOf(f, m.Name); place != "" {
		return place == arbiterSlot
	}
	_, marked := m.Labels[bootstrapv1.ArbiterLabel]
	return marked
}

// LostArbiterRole reports whether the config of a Machine has the label of an arbiter but not the role. A
// bootstrap provider from before arbiters drops the field, for example when the cluster is moved to its hub,
// and the host remains an arbiter. No second arbiter is then created for another Machine.
func LostArbiterRole(f *facts.Facts, m *clusterv1.Machine) bool {
	config := f.Configs[m.Name]
	return config != nil && config.Spec.Role == "" && metav1.HasLabel(config.ObjectMeta, bootstrapv1.ArbiterLabel)
}

// slotOf returns the slot of a Machine name; "" if no current slot has the name.
func slotOf(f *facts.Facts, name string) string {
	places := []string{arbiterSlot}
	for index := range len(f.Machines) + int(f.Replicas()) {
		places = append(places, strconv.Itoa(index))
	}
	for _, place := range places {
		if of, err := machineName(f, place); err == nil && of == name {
			return place
		}
	}
	return ""
}

// namingVariable matches a variable of a naming template, with the space that its trim markers remove.
var namingVariable = regexp.MustCompile(`(?:[{][{]|[ \t\r\n]*[{][{]- ) *` +
	`([.]random|[.](?:cluster|controlPlane|kubeadmControlPlane)[.]name) *(?:[}][}]| -[}][}][ \t\r\n]*)`)

// namingTemplate matches the templates that the schema accepts (MachineNamingSpec). Objects from before this
// schema may have others. A template that loops, or prints without end, would block all clusters.
var namingTemplate = regexp.MustCompile(`^(?:[^{}]|` + namingVariable.String() + `)*$`)

// expandName returns a naming template with the values of its variables. Package text/template is not used: it
// calls methods by name, so the linker would keep all methods of all types (8 MiB of memory).
func expandName(template string, values map[string]string) string {
	return namingVariable.ReplaceAllStringFunc(template, func(variable string) string {
		return values[namingVariable.FindStringSubmatch(variable)[1]]
	})
}

// machineName returns the name of the Machine of a slot: a number, or the slot of the arbiter.
func machineName(f *facts.Facts, slot string) (string, error) {
	suffix := machineSuffix(f.ControlPlane.UID, slot)
	if f.ControlPlane.Spec.MachineNaming.Template == "" {
		prefix := f.ControlPlane.Name
		if longest := maxMachineName - suffixLength - 1; len(prefix) > longest {
			prefix = strings.TrimRight(prefix[:longest], "-.")
		}
		return prefix + "-" + suffix, nil
	}
	if !namingTemplate.MatchString(f.ControlPlane.Spec.MachineNaming.Template) {
		return "", errors.New("machineNaming.template has more than text and the variables .cluster.name, .controlPlane.name and .random")
	}
	name := expandName(f.ControlPlane.Spec.MachineNaming.Template, map[string]string{
		".cluster.name": f.ClusterName(), ".controlPlane.name": f.ControlPlane.Name, ".kubeadmControlPlane.name": f.ControlPlane.Name,
		".random": suffix,
	})
	if !strings.Contains(name, suffix) {
		return "", errors.New("machineNaming.template gives several Machines one name: it must contain {{ .random }}")
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return "", fmt.Errorf("machineNaming.template gives the name %q: %s", name, problems[0])
	}
	if len(name) > maxMachineName {
		return "", fmt.Errorf("machineNaming.template gives the name %q, which is longer than %d characters", name, maxMachineName)
	}
	return name, nil
}

// machineSuffix returns a suffix that is stable and differs for each slot of each control plane.
func machineSuffix(uid types.UID, slot string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s", uid, slot))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:suffixLength]
}
