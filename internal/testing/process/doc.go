// Package process runs programs as separate processes, in groups that start and stop together. Their ports, logs and
// temporary data are removed even if the process that started them is killed.
package process
