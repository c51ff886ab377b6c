"""The CPU emitter: llvm loops, vectorised exp, register-tiled products. Cut by the structure of programs, never by workload.

``row_tiles`` and ``row_wise`` take a prologue contraction and product stages, ``streaming`` takes neither.
"""
