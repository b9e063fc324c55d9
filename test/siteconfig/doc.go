// Package siteconfig renders ClusterInstances like the siteconfig operator. It has the fields of ClusterInstance under
// the names that templates use, and the functions and variables that the operator provides to templates. Source:
// stolostron/siteconfig (August 2026).
package siteconfig
