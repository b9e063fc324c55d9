package assistedsim

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// Validations that the service never ignores (internal/common/validations.go, August 2026).
var (
	neverIgnoredOfClusters = []string{
		"api-vips-defined", "ingress-vips-defined", "all-hosts-are-ready-to-install", "sufficient-masters-count", "pull-secret-set",
	}
	neverIgnoredOfHosts = []string{
		"connected", "has-inventory", "inventory-not-fully-truncated", "machine-cidr-defined", "hostname-unique", "hostname-valid",
	}
)

// ignoredValidations are the validations that the service ignores for a cluster. A list is nil if no annotation states
// the list.
type ignoredValidations struct{ cluster, hosts []string }

// ignoreValidations reads the annotations with ignored validations, as the service does since April 2026. It refuses a
// change while the cluster is being installed (applyIgnoredValidations and VerifyClusterUpdatability of the service).
func (c *cluster) ignoreValidations(aci *hiveext.AgentClusterInstall) error {
	cluster, err := validationsIn(aci, assisted.IgnoredClusterValidationsAnnotation)
	if err != nil {
		return err
	}
	hosts, err := validationsIn(aci, assisted.IgnoredHostValidationsAnnotation)
	if err != nil {
		return err
	}
	next := ignoredValidations{cluster, hosts}
	if reflect.DeepEqual(next, c.ignored) {
		return nil
	}
	if !c.waiting() && c.state != models.ClusterStatusAddingHosts {
		return inputErrorf("Cluster %s is in %s state, cluster can be updated only in one of "+
			"[insufficient ready pending-for-input adding-hosts]", c.id, c.state)
	}
	if err := errors.Join(checkIgnored(cluster, "cluster", neverIgnoredOfClusters, func(id string) error {
		return models.NewClusterValidationID(models.ClusterValidationID(id)).Validate(nil)
	}), checkIgnored(hosts, "host", neverIgnoredOfHosts, func(id string) error {
		return models.NewHostValidationID(models.HostValidationID(id)).Validate(nil)
	})); err != nil {
		return inputErrorf("cannot proceed due to the following errors: %s", err.Error())
	}
	c.ignored = next
	return nil
}

func validationsIn(aci *hiveext.AgentClusterInstall, annotation string) ([]string, error) {
	value, stated := aci.Annotations[annotation]
	if !stated {
		return nil, nil
	}
	ids := []string{}
	if strings.TrimSpace(value) == "" {
		return ids, nil
	}
	for id := range strings.SplitSeq(value, ",") {
		if id = strings.TrimSpace(id); id == "" {
			return nil, inputErrorf("annotation %q: failed to parse comma-separated validation IDs", annotation)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// checkIgnored returns an error for validations that the service does not know or never ignores.
func checkIgnored(ids []string, kind string, never []string, known func(id string) error) error {
	for _, id := range ids {
		switch {
		case slices.Contains(never, id):
			return inputErrorf("unable to ignore the following %s validations (%s)", kind, id)
		case known(id) != nil && id != "all":
			return inputErrorf("Validation ID '%s' is not a known %s validation", id, kind)
		}
	}
	return nil
}

// ignores reports whether the service ignores a validation of a host. The list of a cluster, even an empty one, replaces
// the list of the service (preprocess in internal/host/refresh_status_preprocessor.go).
func (s *Simulator) ignores(h *host, id models.HostValidationID) bool {
	ids := s.opts.DisabledHostValidations
	if c := s.clusters[h.cluster]; c != nil && c.ignored.hosts != nil {
		ids = c.ignored.hosts
	}
	return slices.Contains(ids, string(id)) || slices.Contains(ids, "all")
}

// invalid returns the failure of the validation ntp-synced of a host, which [Simulator.FailValidation] sets; "" if the
// validation passes or is ignored.
func (s *Simulator) invalid(h *host) string {
	if s.ignores(h, models.HostValidationIDNtpSynced) {
		return ""
	}
	return s.faults.invalid[h.key.Name]
}
