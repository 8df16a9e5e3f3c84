/* What mypyc's C calls only where an error is raised. Told so, the compiler lays those ways out apart, and what runs lies
 * closer together. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define COLD __attribute__((cold))

COLD void CPyError_OutOfMemory(void);
COLD void CPy_TypeError(const char *expected, PyObject *value);
COLD void CPy_AddTraceback(const char *filename, const char *funcname, int line, PyObject *globals);
COLD void CPy_TypeErrorTraceback(const char *filename, const char *funcname, int line,
                                 PyObject *globals, const char *expected, PyObject *value);
COLD void CPy_AttributeError(const char *filename, const char *funcname, const char *classname,
                             const char *attrname, int line, PyObject *globals);
