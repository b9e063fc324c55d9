package assistedsim

import (
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

// ignoreValidations reads the annotations with ignored validations, as the service does since April 2026.
func (c *cluster) ignoreValidations(aci *hiveext.AgentClusterInstall) error {
	_, err := validationsIn(aci, assisted.IgnoredClusterValidationsAnnotation, "cluster", neverIgnoredOfClusters, func(id string) error {
		return models.NewClusterValidationID(models.ClusterValidationID(id)).Validate(nil)
	})
	if err != nil {
		return err
	}
	c.ignoredOfHosts, err = validationsIn(aci, assisted.IgnoredHostValidationsAnnotation, "host", neverIgnoredOfHosts, func(id string) error {
		return models.NewHostValidationID(models.HostValidationID(id)).Validate(nil)
	})
	return err
}

func validationsIn(
	aci *hiveext.AgentClusterInstall, annotation, kind string, never []string, known func(id string) error,
) ([]string, error) {
	var ids []string
	for id := range strings.SplitSeq(aci.Annotations[annotation], ",") {
		switch id = strings.TrimSpace(id); {
		case id == "" && strings.TrimSpace(aci.Annotations[annotation]) == "": // explicitly none
		case id == "":
			return nil, inputErrorf("annotation %q: failed to parse comma-separated validation IDs", annotation)
		case slices.Contains(never, id):
			return nil, inputErrorf("cannot proceed due to the following errors: unable to ignore the following %s validations (%s)", kind, id)
		case known(id) != nil && id != "all":
			return nil, inputErrorf("cannot proceed due to the following errors: Validation ID '%s' is not a known %s validation", id, kind)
		default:
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// ignores reports whether the cluster of a host ignores a validation of its hosts.
func (s *Simulator) ignores(h *host, id models.HostValidationID) bool {
	c := s.clusters[h.cluster]
	return c != nil && (slices.Contains(c.ignoredOfHosts, string(id)) || slices.Contains(c.ignoredOfHosts, "all"))
}

// invalid returns the failure of the validation ntp-synced of a host, which [Simulator.FailValidation] sets; "" if the
// validation passes or is ignored.
func (s *Simulator) invalid(h *host) string {
	if s.ignores(h, models.HostValidationIDNtpSynced) {
		return ""
	}
	return s.faults.invalid[h.key.Name]
}
