# SPDX-License-Identifier: Apache-2.0

# DSC_ADD_FLAG(VARIABLE, FLAG): adds FLAG to VARIABLE where the compiler and the linker accept it
# without a warning. clang accepts what it does not use, with a warning.
AC_DEFUN([DSC_ADD_FLAG],
  [AS_VAR_PUSHDEF([accepts], [dsc_cv_accepts_$2])
   AC_CACHE_CHECK([whether $CC accepts $2], [accepts],
     [saved_CFLAGS=$CFLAGS
      CFLAGS="$CFLAGS -Werror $2"
      AC_LINK_IFELSE([AC_LANG_PROGRAM],
        [AS_VAR_SET([accepts], [yes])], [AS_VAR_SET([accepts], [no])])
      CFLAGS=$saved_CFLAGS])
   AS_VAR_IF([accepts], [yes], [$1="$$1 $2"])
   AS_VAR_POPDEF([accepts])])

# DSC_FORTIFY_LEVEL: sets fortify_level to 3 or 2, the highest level of _FORTIFY_SOURCE that the
# compiler and the C library have. It is `none' where they have none, where the user's flags or the
# compiler set a level, and without optimization, which it needs.
AC_DEFUN([DSC_FORTIFY_LEVEL],
  [AC_CACHE_CHECK([for the level of _FORTIFY_SOURCE to ask for], [dsc_cv_fortify_level],
     [saved_CPPFLAGS=$CPPFLAGS
      dsc_cv_fortify_level=none
      for level in 3 2; do
        AS_IF([test "$dsc_cv_fortify_level" = none],
          [CPPFLAGS="$saved_CPPFLAGS -DDSC_LEVEL=$level"
           AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#if defined _FORTIFY_SOURCE || !defined __OPTIMIZE__
#error "set by the user or the compiler, or not of use"
#endif
#define _FORTIFY_SOURCE DSC_LEVEL
#include <string.h>
#if !defined __USE_FORTIFY_LEVEL || __USE_FORTIFY_LEVEL < DSC_LEVEL
#error "the C library lacks this level"
#endif
]])], [dsc_cv_fortify_level=$level])])
      done
      CPPFLAGS=$saved_CPPFLAGS])
   fortify_level=$dsc_cv_fortify_level])

# DSC_HARDENING: sets HARDENING_CFLAGS for all objects (the host compiler of nvcc takes them too),
# FORTIFY_CFLAGS for those that copy bytes of others, and HARDENING_LDFLAGS for programs and the
# library. Where position-independent programs are the compiler's default, they stay so. Sanitizers
# replace the checked functions of _FORTIFY_SOURCE by their own. HARDENING is for
# tests/cli/test_hardened.sh: no, yes, or unfortified, for a build without _FORTIFY_SOURCE.
AC_DEFUN([DSC_HARDENING],
  [AC_ARG_ENABLE([hardening],
     [AS_HELP_STRING([--disable-hardening], [build without stack protector, full RELRO,
        _FORTIFY_SOURCE and control-flow protection (to measure what they cost)])],
     [], [enable_hardening=yes])
   HARDENING=no
   HARDENING_CFLAGS=
   HARDENING_LDFLAGS=
   FORTIFY_CFLAGS=
   AS_IF([test "x$enable_hardening" != xno],
     [HARDENING=unfortified
      DSC_ADD_FLAG([HARDENING_CFLAGS], [-fstack-protector-strong])
      DSC_ADD_FLAG([HARDENING_CFLAGS], [-fstack-clash-protection])
      DSC_ADD_FLAG([HARDENING_CFLAGS], [-fcf-protection])
      DSC_ADD_FLAG([HARDENING_LDFLAGS], [-Wl,-z,relro])
      DSC_ADD_FLAG([HARDENING_LDFLAGS], [-Wl,-z,now])
      DSC_ADD_FLAG([HARDENING_LDFLAGS], [-Wl,-z,noexecstack])
      AS_IF([test "x$enable_sanitize" = xno],
        [DSC_FORTIFY_LEVEL
         AS_IF([test "$fortify_level" != none],
           [HARDENING=yes
            FORTIFY_CFLAGS=-D_FORTIFY_SOURCE=$fortify_level])])])
   AC_SUBST([HARDENING])
   AC_SUBST([HARDENING_CFLAGS])
   AC_SUBST([HARDENING_LDFLAGS])
   AC_SUBST([FORTIFY_CFLAGS])])
