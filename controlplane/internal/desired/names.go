package desired

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
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
	// Arbiter tells that it is the place of an arbiter.
	Arbiter bool
}

// arbiterPlace is the place of the arbiter, of whose name there is never another Machine: so there are never two arbiters.
const arbiterPlace = "arbiter"

// FreeSlots returns the first places that no Machine has, that of an arbiter before the others. Like is replaced by
// like: as long as an arbiter is there, also one that goes, the others are masters.
func FreeSlots(f *facts.Facts, count int) ([]Slot, error) {
	taken, domains := map[string]bool{}, domainsOf(f)
	masters, arbiters := count, int(f.Arbiters())
	for _, m := range f.Machines {
		taken[m.Name] = true
		if IsArbiter(f, m) || LostItsRole(f, m) {
			arbiters = 0
		}
	}
	arbiter, err := machineName(f, arbiterPlace)
	if err != nil {
		return nil, err
	}
	if taken[arbiter] { // by a Machine whose config does not say so: a name is given once
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

// IsArbiter reports whether a Machine of the control plane is that of an arbiter. Its OpenshiftAssistedConfig decides,
// as it does for the bootstrap provider. Where that is gone, or not seen yet, the name tells the place, unless the
// Machine was made for a control plane of another UID, before a move: then nothing is left but the label.
func IsArbiter(f *facts.Facts, m *clusterv1.Machine) bool {
	if config := f.Configs[m.Name]; config != nil {
		return config.Spec.Role == bootstrapv1.HostRoleArbiter
	}
	if place := placeOf(f, m.Name); place != "" {
		return place == arbiterPlace
	}
	_, marked := m.Labels[bootstrapv1.ArbiterLabel]
	return marked
}

// LostItsRole reports whether the config of a Machine has the label of an arbiter and not the role: a bootstrap
// provider from before arbiters drops the field, for example when the cluster is moved to its hub, and the host stays
// what it is. In place of another Machine no second arbiter is made then.
func LostItsRole(f *facts.Facts, m *clusterv1.Machine) bool {
	config := f.Configs[m.Name]
	return config != nil && config.Spec.Role == "" && metav1.HasLabel(config.ObjectMeta, bootstrapv1.ArbiterLabel)
}

// placeOf is the place whose Machine has a name; empty: none that can be taken now.
func placeOf(f *facts.Facts, name string) string {
	places := []string{arbiterPlace}
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

// variablesOnly are the templates that the schema takes (MachineNamingSpec). Objects that were stored before it refused
// others may hold them still: one that loops, or prints without end, would hold up all clusters.
var variablesOnly = regexp.MustCompile(`^([^{}]|[{][{]-? *[.](random|(cluster|controlPlane|kubeadmControlPlane)[.]name) *-?[}][}])*$`)

// machineName is the name of the Machine at a place: a number, or that of the arbiter.
func machineName(f *facts.Facts, place string) (string, error) {
	suffix := machineSuffix(f.ControlPlane.UID, place)
	if f.ControlPlane.Spec.MachineNaming.Template == "" {
		prefix := f.ControlPlane.Name
		if longest := maxMachineName - suffixLength - 1; len(prefix) > longest {
			prefix = strings.TrimRight(prefix[:longest], "-.")
		}
		return prefix + "-" + suffix, nil
	}
	if !variablesOnly.MatchString(f.ControlPlane.Spec.MachineNaming.Template) {
		return "", errors.New("machineNaming.template has more than text and the variables .cluster.name, .controlPlane.name and .random")
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
	if !strings.Contains(name.String(), suffix) {
		return "", errors.New("machineNaming.template gives several Machines one name: it must contain {{ .random }}")
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
func machineSuffix(uid types.UID, place string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s", uid, place))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:suffixLength]
}
