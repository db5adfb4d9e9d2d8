set encoding utf8
set terminal pngcairo noenhanced size 1200,720
set output 'sweep-throughput-apache.png'
set title 'Apache + mod_php: Throughput over concurrency'
set xlabel 'concurrency'
set ylabel 'throughput (requests/s)'
set xrange [0:*]
set yrange [0:*]
set grid
set samples 200
set key above
plot 'sweep-throughput-apache-apache.dat' using 1:2 with points pointtype 2 linecolor rgb '#d1001f' title 'Apache + mod_php', \
     'sweep-throughput-apache-apache.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#d1001f' notitle
